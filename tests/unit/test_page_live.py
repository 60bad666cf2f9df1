"""The bar that shows what is being indexed or embedded."""

from __future__ import annotations

from pathlib import Path

from support.site import http_client, serve

from qmd.ingest.events import Event
from qmd.system import clock


def test_the_bar_shows_work_and_the_time_left_and_nothing_without_work(tmp_path: Path) -> None:
    with serve(tmp_path, embed=False) as served, http_client(served.url) as client:
        assert client.get("/part/live").text.strip() == ""
        for done in (100, 200):
            served.kb.events.publish(Event("indexing", clock.now(), done=done, total=1_000))
        bar = client.get("/part/live").text
        assert '<progress max="1000" value="200"' in bar
        assert "200 of 1,000 · about 1 second left" in bar
        served.kb.events.publish(Event("indexing", clock.now(), done=1_000, total=1_000))
        assert client.get("/part/live").text.strip() == ""


def test_the_bar_is_in_the_language_of_the_page(tmp_path: Path) -> None:
    with serve(tmp_path) as served, http_client(served.url) as client:
        served.kb.events.publish(Event("embedding", clock.now(), done=3, total=9))
        bar = client.get("/part/live", headers={"accept-language": "zh-CN"}).text
        assert "生成向量" in bar
        assert "3/9" in bar
