"""A message is its subject, its people, its text and the names of its attachments."""

from __future__ import annotations

from email.message import EmailMessage

import pytest

from qmd.errors import DamagedFileError
from qmd.parse.convert.mail import MAX_HEADER, _parsed, convert


def message(subject: str, text: str = "Text", **headers: str) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = subject
    mail["From"] = "Ann Baker <ann@example.org>"
    mail["To"] = "bo@example.org, 王芳 <fang@example.org>"
    mail["Date"] = "Tue, 05 Mar 2024 10:00:00 +0100"
    for name, value in headers.items():
        mail[name.replace("_", "-")] = value
    mail.set_content(text)
    return mail


def test_a_message() -> None:
    mail = message("Größe: 数据库", "Hello [a](b)\n\n# no heading\n> quoted\n-- \nAnn\n")
    mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="报告.pdf")
    converted = convert("a.eml", mail.as_bytes())
    assert converted.markdown == (
        "# Größe: 数据库\n\n"
        "From: Ann Baker <ann@example.org>\n"
        "To: bo@example.org, 王芳 <fang@example.org>\n"
        "Date: Tue, 05 Mar 2024 10:00:00 +0100\n\n"
        "Hello [a]\\(b)\n\n\\# no heading\n> quoted\n\nAnn\n\n"
        "Attachments:\n\n- 报告.pdf\n"
    )
    assert converted.title == "Größe: 数据库"
    assert converted.date == "2024-03-05T10:00:00+01:00"
    assert converted.properties == {
        "from": ["Ann Baker", "ann@example.org"],
        "to": ["bo@example.org", "王芳", "fang@example.org"],
    }


def test_html_counts_where_the_plain_text_only_points_to_it() -> None:
    mail = message("News", "See the HTML.")
    mail.add_alternative(f"<p>{'Much news. ' * 20}<b>#x</b></p><img src='cid:1'>", subtype="html")
    assert "Much news. Much news." in convert("a.eml", mail.as_bytes()).markdown
    mail = message("News", "Much news. " * 20)
    mail.add_alternative(f"<p>{'Much NEWS. ' * 20}</p>", subtype="html")
    assert "NEWS" not in convert("a.eml", mail.as_bytes()).markdown
    mail = message("News")
    mail.set_content("<h2>数据</h2>", subtype="html", charset="gb18030")
    assert convert("a.eml", mail.as_bytes()).markdown.endswith("\n\n## 数据\n")


@pytest.mark.parametrize(
    "stub",
    [
        "Your email client does not support HTML.",
        "View this message in your browser: https://shop.example/order/88421/ships/friday",
        "您的邮件客户端不支持网页格式。",
        "Order ships Friday. View it online: https://shop.example/order/88421/ships/friday",
    ],
)
def test_a_text_that_is_no_form_of_the_html_is_a_stub(stub: str) -> None:
    mail = message("Order", stub)
    page = (
        "<p>Order 88421 ships Friday, total 42 EUR</p><p>Thanks for shopping with us</p><p>Bye</p>"
    )
    mail.add_alternative(page * 2, subtype="html")
    text = convert("a.eml", mail.as_bytes()).markdown
    assert "Order 88421 ships Friday" in text
    assert stub[:8] not in text


def test_a_page_beside_a_text_does_not_take_its_place() -> None:
    mail = message("Order", "A text of its own.")
    mail.make_mixed()
    footer = EmailMessage()
    footer.set_content("<p>This list is for bakers and for millers</p>", subtype="html")
    mail.attach(footer)
    assert "A text of its own." in convert("a.eml", mail.as_bytes()).markdown


def test_an_invitation_says_what_where_and_when() -> None:
    calendar = (
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Board\\, all of\r\n  us\r\n"
        "DTSTART;TZID=Europe/Berlin:20260601T100000\r\nDTEND:20260601T090000Z\r\n"
        "RRULE:FREQ=WEEKLY;INTERVAL=2;UNTIL=20261231T000000Z;BYDAY=MO,WE\r\n"
        "LOCATION:Room 7\r\nDESCRIPTION:Bring\\nbread\r\n"
        "BEGIN:VALARM\r\nDESCRIPTION:Reminder\r\nEND:VALARM\r\nEND:VEVENT\r\n"
        "BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20260602\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    mail = message("Invite", "Please come.")
    mail.add_alternative(calendar, subtype="calendar")
    assert convert("a.eml", mail.as_bytes()).markdown.endswith(
        "Please come.\n\nEvent: Board, all of us\n"
        "When: 2026-06-01 10:00 (Europe/Berlin) – 2026-06-01 09:00 UTC\n"
        "Repeats: every 2 weeks on Mon, Wed, until 2026-12-31 00:00 UTC\nWhere: Room 7\n\n"
        "Bring\nbread\n\nEvent: (no title)\nWhen: 2026-06-02\n"
    )


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("FREQ=DAILY;COUNT=10", "Repeats: every day, 10 times\n"),
        ("FREQ=MONTHLY;BYDAY=2TU,-1FR", "Repeats: every month on 2. Tue, last Fri\n"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,15", "Repeats: every month on day 1, 15\n"),
        ("FREQ=YEARLY;UNTIL=20300101", "Repeats: every year, until 2030-01-01\n"),
        ("FREQ=WEEKLY;BYDAY=XX,,", "Repeats: every week\n"),
        ("FREQ=", ""),
        ("x", ""),
    ],
)
def test_an_event_says_when_it_repeats(rule: str, told: str) -> None:
    calendar = f"BEGIN:VEVENT\r\nSUMMARY:Board\r\nRRULE:{rule}\r\nEND:VEVENT\r\n"
    mail = message("Invite", "Please come.")
    mail.add_alternative(calendar, subtype="calendar")
    assert convert("a.eml", mail.as_bytes()).markdown.endswith(f"Event: Board\n{told}")


def test_a_text_with_most_words_of_the_html_stays() -> None:
    mail = message("Order", "Order 88421 ships Friday, total 42 EUR. Kind regards!")
    page = "<p>Order 88421 ships Friday, TOTAL 42 EUR</p><p>Kind regards</p><p>Shop, Main Road</p>"
    mail.add_alternative(page, subtype="html")
    assert "TOTAL" not in convert("a.eml", mail.as_bytes()).markdown


def times_of(*properties: str) -> str:
    lines = ["BEGIN:VCALENDAR", "BEGIN:VEVENT", *properties, "END:VEVENT", "END:VCALENDAR", ""]
    mail = message("Invite", "")
    mail.add_alternative("\r\n".join(lines), subtype="calendar")
    return convert("a.eml", mail.as_bytes()).markdown.partition("Event: ")[2]


def test_a_colon_in_quotes_belongs_to_a_parameter_of_an_invitation() -> None:
    assert times_of(
        'SUMMARY;ALTREP="cid:x":Meet: all',
        'DTSTART;TZID="(UTC+01:00) Berlin":20240601T100000',
        'DESCRIPTION;ALTREP="cid:never ends:lost',
    ) == ("Meet: all\nWhen: 2024-06-01 10:00 ((UTC+01:00) Berlin)\n")


@pytest.mark.parametrize(
    ("properties", "when"),
    [
        (("DTSTART;VALUE=DATE:20240501", "DTEND;VALUE=DATE:20240502"), "2024-05-01"),
        (("DTSTART;VALUE=DATE:20240501", "DTEND;VALUE=DATE:20240501"), "2024-05-01"),
        (
            ("DTSTART;VALUE=DATE:20240228", "DTEND;VALUE=DATE:20240301"),
            "2024-02-28 – 2024-02-29",
        ),
        (("DTSTART;VALUE=DATE:20240501", "DURATION:P1W"), "2024-05-01 – 2024-05-07"),
        (
            ("DTSTART:20240501T233000Z", "DURATION:PT1H30M"),
            "2024-05-01 23:30 UTC – 2024-05-02 01:00 UTC",
        ),
        (
            ("DTSTART;TZID=Asia/Tokyo:20240501T100000", "DURATION:P1DT0H"),
            "2024-05-01 10:00 (Asia/Tokyo) – 2024-05-02 10:00 (Asia/Tokyo)",
        ),
        (("DTSTART:20240501T100000", "DTEND:20240501T100000"), "2024-05-01 10:00"),
        (("DTSTART:soon", "DURATION:PT1H"), "soon"),
        (("DTSTART:20241350", "DURATION:P1D"), "2024-13-50"),
        (("DTSTART:99991231T230000", "DURATION:P9999W"), "9999-12-31 23:00"),
    ],
)
def test_an_invitation_says_the_last_day_of_an_event(
    properties: tuple[str, ...], when: str
) -> None:
    assert times_of(*properties) == f"(no title)\nWhen: {when}\n"


def test_forwarded_messages_stand_below() -> None:
    mail = message("Outer")
    mail.add_attachment(message("Inner", "Inner text"))
    text = convert("a.eml", mail.as_bytes()).markdown
    assert text.startswith("# Outer\n")
    assert "\n\nText\n\n## Inner\n\nFrom: Ann" in text


def test_a_mailbox_has_its_conversations_together() -> None:
    mails = [
        message("Plan", "first", Message_ID="<1@x>"),
        message("Other", "From here\nFrom there", Message_ID="<2@x>"),
        message("Re: Plan", "answer", Message_ID="<3@x>", In_Reply_To="<1@x>"),
        message("RE: other", "by subject alone"),
        message("回复：Plan", "answer", References="<1@x> <3@x>"),
    ]
    data = b"".join(
        b"From a@b Tue Mar  5 10:00:00 2024\n" + each.as_bytes() + b"\n" for each in mails
    )
    box = convert("a.mbox", data.replace(b"\nFrom here", b"\n>From here"))
    headings = [line for line in box.markdown.split("\n") if line.startswith("##")]
    assert headings == ["## Plan", "### Re: Plan", "### 回复：Plan", "## Other", "### RE: other"]
    assert [each.label for each in box.anchors] == ["1", "3", "5", "2", "4"]
    assert "\nFrom here\nFrom there\n" in box.markdown
    for anchor, heading in zip(box.anchors, headings, strict=True):
        assert box.markdown[anchor.start_char :].startswith(heading)
    assert convert("archive", data).anchors == convert("a.mbox", data).anchors


@pytest.mark.parametrize(
    ("headers", "thread"),
    [
        ({"Message_ID": "<1@x>"}, "1@x"),
        ({"Message_ID": "<2@x>", "In_Reply_To": "<1@x>"}, "1@x"),
        ({"Message_ID": "<3@x>", "In_Reply_To": "<2@x>", "References": "<1@x>\n <2@x>"}, "1@x"),
        ({}, None),
    ],
)
def test_messages_of_a_conversation_have_their_first_in_common(
    headers: dict[str, str], thread: str | None
) -> None:
    source = message("Plan", **{k: v.replace("\n", "") for k, v in headers.items()})
    assert convert("a.eml", source.as_bytes()).properties.get("thread") == thread
    answer = message("RE: Fwd:  The Plan", Message_ID="<4@x>")
    assert convert("a.eml", answer.as_bytes()).properties["thread"] == "the plan"


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("Subject: =?utf-8?b?5pWw5o2u?= =?utf-8?q?_caf=C3=A9?=", "# 数据 café"),
        ("Subject: =?utf-8?b?broken", "# =?utf-8?b?broken"),
        ("Subject: =?utf-8?b?####?=\nX: y", "# "),
        ("Subject: =?no-such?q?abc?=", "# abc"),
        ("Subject: raw 数据", "# raw 数据"),
        ("From: a\nDate: nonsense", "# (no subject)\n\nFrom: a\nDate: nonsense"),
        ("Subject: x\nContent-Type: text/plain; charset=no-such\n\ncafé", "café"),
        ("Subject: x\nContent-Transfer-Encoding: base64\n\n!!!", "# x"),
        ("Subject: x\nContent-Type: multipart/mixed\n\nno boundary", "# x"),
        ("Subject: a\n b\n\tc\n\ntext", "# a b c\n\ntext"),
    ],
)
def test_headers_as_they_come(source: str, part: str) -> None:
    assert part in convert("a.eml", source.encode()).markdown


def test_names_of_attachments_as_they_come() -> None:
    for name in (
        'filename="报告.pdf"',
        'filename="=?utf-8?b?5oql5ZGKLnBkZg==?="',
        "filename*=utf-8''%E6%8A%A5%E5%91%8A.pdf",
    ):
        source = f"Subject: x\nContent-Disposition: attachment; {name}\n\n%PDF"
        assert "- 报告.pdf\n" in convert("a.eml", source.encode()).markdown


def test_text_that_is_to_be_shown_is_text_whatever_its_name_is() -> None:
    mail = message("Notes", "Above")
    mail.add_attachment("Between", disposition="inline", filename="notes.txt")
    mail.add_attachment("Apart", filename="other.txt")
    mail.add_attachment(b"%PDF", maintype="text", subtype="x", disposition="inline", filename="x.x")
    text = convert("a.eml", mail.as_bytes()).markdown
    assert "Above\n\nBetween\n" in text and "Apart" not in text
    assert "- other.txt\n- x.x\n" in text


def test_what_is_no_message() -> None:
    for name, data in (("a.eml", b""), ("a.eml", b"\n\ntext"), ("a.mbox", b"text\nmore")):
        with pytest.raises(DamagedFileError, match="no message"):
            convert(name, data)
    assert convert("a.mbox", b"").markdown == ""


def test_parts_inside_parts_without_end() -> None:
    parts = "".join(
        f'Content-Type: multipart/mixed; boundary="{number}"\n\n--{number}\n'
        for number in range(300)
    )
    forwarded = "Content-Type: message/rfc822\n\n" * 5000
    for source in (parts, forwarded):
        with pytest.raises(DamagedFileError, match="parts inside parts"):
            convert("a.eml", f"Subject: bomb\n{source}".encode())
    deep = message("0")
    for number in range(1, 30):
        mail = message(str(number))
        mail.add_attachment(deep)
        deep = mail
    text = convert("a.eml", deep.as_bytes()).markdown
    assert "# 29\n" in text
    assert "# 19\n" in text
    assert "# 18\n" not in text


def test_long_headers_are_cut_before_they_are_parsed() -> None:
    source = f"Subject: bomb\nContent-Type: text/plain; {'a=b; ' * 100_000}\n\nbody".encode()
    [*headers] = _parsed(source).values()
    assert max(map(len, headers)) <= 4 * MAX_HEADER
    assert convert("a.eml", source).markdown == "# bomb\n\nbody\n"
