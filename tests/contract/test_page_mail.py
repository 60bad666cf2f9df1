"""E-mail on the page, over HTTP: a message with its conversation, and mailboxes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import EmailMessage

import httpx
import pytest
from support.site import Served, http_client, serve


def message(number: int, subject: str, text: str, **headers: str) -> bytes:
    mail = EmailMessage()
    mail["Subject"] = subject
    mail["From"] = f"Person {number} <p{number}@example.org>"
    mail["Date"] = f"Tue, 05 Mar 2024 10:{number:02}:00 +0100"
    mail["Message-ID"] = f"<{number}@x>"
    for name, value in headers.items():
        mail[name.replace("_", "-")] = value
    mail.set_content(text)
    return mail.as_bytes()


PLAN = message(1, "Plan", "Shall we paint?\nIt costs $5 <b>or</b> $6.")
YES = message(2, "Re: Plan", "> Shall we paint?\n\nYes, a quagga.", In_Reply_To="<1@x>")
BARE = message(3, "Re: plan", "By subject alone.")
LUNCH = message(4, "Lunch", "Noon?")


def box(*mails: bytes) -> bytes:
    return b"".join(b"From a@b Tue Mar  5 10:00:00 2024\n" + each + b"\n" for each in mails)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    long = [message(1, "Long", "First")]
    long += [message(n, "Re: Long", "x", In_Reply_To="<1@x>") for n in range(2, 60)]
    files: dict[str, str | bytes] = {
        "plan.eml": PLAN,
        "sent/yes.eml": YES,
        "bare.eml": BARE,
        "lunch.eml": LUNCH,
        "box.mbox": box(PLAN, LUNCH, YES),
        "one.mbox": box(LUNCH),
        "long.mbox": box(*long),
        "many.mbox": box(*(message(n % 60, f"Report {n}", "Text") for n in range(130))),
    }
    mask = "**/*.{eml,mbox}"
    with serve(tmp_path_factory.mktemp("mail"), files, embed=False, mask=mask) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url, headers={"accept-language": "en"}) as client:
        yield client


def conversation(html: str) -> list[str]:
    part = html.partition('id="conversation"')[2].partition("</section>")[0]
    return re.findall(r"<li[^>]*>(?:<strong>|<a href=\"[^\"]+\">)([^<]+)", part)


def test_a_message_has_its_head_its_body_and_its_conversation(client: httpx.Client) -> None:
    shown = client.get("/note/notes/sent/yes.eml").text
    assert "<dt>From</dt><dd>Person 2 &lt;p2@example.org&gt;</dd>" in shown
    assert "<blockquote" in shown and "Yes, a quagga." in shown
    assert conversation(shown) == ["Plan", "Re: Plan", "Re: plan"]
    assert 'href="/note/notes/plan.eml"' in shown
    assert shown.count("<h1>Re: Plan</h1>") == 1 and "<h2>Re: Plan</h2>" not in shown
    assert conversation(client.get("/note/notes/plan.eml").text) == ["Plan", "Re: Plan", "Re: plan"]
    assert conversation(client.get("/note/notes/bare.eml").text)[0] == "Plan"
    assert 'id="conversation"' not in client.get("/note/notes/lunch.eml").text


def test_text_of_a_message_stays_text_with_its_line_ends(client: httpx.Client) -> None:
    shown = client.get("/note/notes/plan.eml").text
    assert re.search(r"Shall we paint\?<br>\s*It costs \$5 &lt;b&gt;or&lt;/b&gt; \$6\.", shown)


def test_a_mailbox_lists_its_conversations(client: httpx.Client) -> None:
    shown = client.get("/note/notes/box.mbox").text
    listed = re.findall(r'<a href="\?message=(\d+)">([^<]+)</a>( <span[^>]*>2 messages)?', shown)
    assert [(number, subject, bool(two)) for number, subject, two in listed] == [
        ("1", "Plan", True),
        ("2", "Lunch", False),
    ]
    many = client.get("/note/notes/many.mbox").text
    assert many.count('<a href="?message=') == 100 and 'href="?part=2" rel="next"' in many
    assert client.get("/note/notes/many.mbox?part=2").text.count('<a href="?message=') == 30


@pytest.mark.parametrize("address", ["message=3", "at=message%3D3"])
def test_a_conversation_has_all_its_messages(client: httpx.Client, address: str) -> None:
    shown = client.get(f"/note/notes/box.mbox?{address}").text
    assert re.findall(r'<article class="mail card" id="([^"]+)"', shown) == [
        "message=1",
        "message=3",
    ]
    assert shown.count(" autofocus") == 1
    assert 'href="?message=2" rel="next"' in shown and 'rel="prev"' not in shown


def test_a_hit_leads_to_its_message(client: httpx.Client) -> None:
    found = client.get("/", params={"q": "quagga", "mode": "words"}).text
    address = re.search(r'<h2><a href="(/note/notes/box.mbox[^"]+)"', found)
    assert address is not None
    shown = client.get(address[1].replace("&amp;", "&").removesuffix("#at")).text
    assert 'id="message=3"' in shown and shown.count('id="at"') == 1


def test_a_long_conversation_comes_in_parts(client: httpx.Client) -> None:
    shown = client.get("/note/notes/long.mbox").text
    assert shown.count('class="mail card"') == 50
    assert 'href="?message=1&amp;part=2" rel="next"' in shown
    last = client.get("/note/notes/long.mbox?message=55").text
    assert last.count('class="mail card"') == 9 and 'id="message=55"' in last


def test_a_mailbox_of_one_conversation_is_that(client: httpx.Client) -> None:
    assert "Noon?" in client.get("/note/notes/one.mbox").text
    whole = client.get("/note/notes/box.mbox?as=text").text
    assert 'class="mail' not in whole and "Noon?" in whole
