"""Sheets and comma-separated values on the page, over HTTP: as tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from support.archives import value, xlsx
from support.site import Served, http_client, serve

ROWS = (
    '<row r="3"><c r="B3" t="str"><v>Name</v></c><c r="C3" t="str"><v>Age</v></c></row>'
    + "".join(
        f'<row r="{n}">{value(f"B{n}", f"person {n}", "str")}{value(f"C{n}", str(n))}</row>'
        for n in range(4, 304)
    )
)
TABLE = "name,what\nquagga,<b>extinct</b>\nzebra,a | b \\ c\n" + "".join(
    f"horse {n},{n}\n" for n in range(250)
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    wide = ",".join(f"a column with a long name {n}" for n in range(60))
    files: dict[str, str | bytes] = {
        "people.xlsx": xlsx(ROWS),
        "animals.csv": TABLE,
        "wide.csv": f"{wide}\n{','.join('x' * 60)}\n",
        "empty.csv": "",
    }
    mask = "**/*.{xlsx,csv}"
    with serve(tmp_path_factory.mktemp("sheets"), files, embed=False, mask=mask) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url, headers={"accept-language": "en"}) as client:
        yield client


def rows(html: str) -> list[str]:
    """The texts of the rows of the table, cells separated by bars."""
    table = html.partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        "|".join(re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row))
        for row in re.findall(r"<tr.*?</tr>", table)
    ]


def test_a_sheet_is_one_table_with_the_numbers_of_its_rows(client: httpx.Client) -> None:
    first = client.get("/note/notes/people.xlsx").text
    assert first.count("<table>") == 1 and first.count(">Name</th>") == 1
    assert rows(first)[0] == "4|person 4|4" and len(rows(first)) == 200
    assert "Rows 1 to 200 of 300" in first
    assert 'href="?sheet=Oven&amp;part=2" rel="next"' in first
    last = client.get("/note/notes/people.xlsx?sheet=Oven&part=9").text
    assert rows(last)[-1] == "303|person 303|303" and 'rel="next"' not in last


def test_a_hit_leads_to_its_row(served: Served, client: httpx.Client) -> None:
    found = client.get("/", params={"q": "person 290", "mode": "words"}).text
    lines = re.findall(r'class="number" href="([^"]+)"[^>]*>\d+</a> <span>(.*?)</span>', found)
    address = next(address for address, text in lines if "290" in text)
    shown = client.get(address.replace("&amp;", "&").removesuffix("#at")).text
    (marked,) = re.findall(r'<tr class="at" id="at">.*?</tr>', shown)
    assert "290" in marked


@pytest.mark.parametrize("place", ["sheet=Oven", "sheet=Oven!C250"])
def test_a_place_of_a_link_leads_to_its_part(client: httpx.Client, place: str) -> None:
    shown = client.get("/note/notes/people.xlsx", params={"at": place}).text
    assert shown.count('id="at"') == 1
    assert ("person 250|" in str(rows(shown))) == place.endswith("C250")


def test_separated_values_are_a_table_whose_text_is_text(client: httpx.Client) -> None:
    shown = client.get("/note/notes/animals.csv").text
    assert rows(shown)[:2] == ["1|quagga|&lt;b&gt;extinct&lt;/b&gt;", "2|zebra|a | b \\ c"]
    assert 'href="?part=2" rel="next"' in shown
    assert '<td class="right">7</td>' in shown


def test_what_is_no_table_is_shown_as_text(client: httpx.Client) -> None:
    assert "<li" in client.get("/note/notes/wide.csv").text
    assert "This note is empty" in client.get("/note/notes/empty.csv").text
    whole = client.get("/note/notes/animals.csv?as=text").text
    assert 'class="sheet"' not in whole and "quagga" in whole
