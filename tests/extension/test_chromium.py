"""The extension in a real Chromium: a player in a frame's shadow root, on a page that lies."""

from __future__ import annotations

import asyncio
from pathlib import Path

from selenium import webdriver

from steerline.flow.v1 import flow_pb2
from steerline.report.v1 import report_pb2
from tests.agent.station import Station

from .browser import EXTENSION_ID, Pages, build_extension, chromium, make_film, wait_for

PAGE = """<!doctype html><title>page</title><iframe src="/frame.html" width="400" height="260"></iframe>"""
# Late, in a shadow root of a frame; among 500 others; and the page tells nonsense of its players.
FRAME = """<!doctype html><title>frame</title><body><script>
for (const name of ["buffered", "currentTime", "duration", "paused"]) {
  Object.defineProperty(HTMLMediaElement.prototype, name, { get: () => 1e9 });
}
for (let i = 0; i < 500; i += 1) document.body.append(document.createElement("video"));
setTimeout(() => {
  const host = document.createElement("div");
  document.body.prepend(host);
  const video = document.createElement("video");
  video.src = "/film.mp4";
  host.attachShadow({ mode: "open" }).append(video);
  video.play();
  setInterval(() => { for (let i = 0; i < 300; i += 1) video.dispatchEvent(new Event("waiting")); }, 100);
  globalThis.film = video;
}, 1500);
</script>"""


PLAYING = flow_pb2.PLAYER_STATE_PLAYING


def look(driver: webdriver.Chrome, picture: Path) -> str:
    """The popup about the first tab, as text; and a picture of it."""
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    driver.get(f"chrome-extension://{EXTENSION_ID}/options.html")
    tab = driver.execute_async_script("""
        const done = arguments[0];
        chrome.tabs.query({}).then((tabs) => done(Math.min(...tabs.map(({ id }) => id))));
    """)
    driver.get(f"chrome-extension://{EXTENSION_ID}/popup.html?tab={tab}")
    wait_for(lambda: "in store" in driver.find_element("tag name", "body").text)
    text: str = driver.find_element("tag name", "body").text
    driver.save_screenshot(str(picture))
    driver.close()
    driver.switch_to.window(first)
    return text


def playing(station: Station) -> list[report_pb2.PlaybackReport]:
    """The reports of play that name a connection."""
    return [report for report in station.reports if report.player_state == PLAYING and report.flows]


async def test_a_player_in_a_page_that_lies_is_reported_as_it_is(tmp_path: Path, station: Station) -> None:
    """State, buffer and remaining media are the browser's own, the five-tuple is the film's connection's,
    the popup says so, and the station hears when the page is left."""
    film = tmp_path / "film.mp4"
    await asyncio.to_thread(make_film, film, 60)
    extension = await asyncio.to_thread(build_extension, tmp_path / "extension")
    pages = Pages({"/": PAGE, "/frame.html": FRAME}, film, film.stat().st_size // 40)

    def drive() -> str:
        with chromium(extension, tmp_path, station.arguments) as driver:
            driver.get(f"http://127.0.0.1:{pages.port}/")
            wait_for(lambda: len(playing(station)) >= 5)
            text = look(driver, tmp_path / "popup.png")
            driver.get("about:blank")
            wait_for(lambda: station.reports[-1].player_state == flow_pb2.PLAYER_STATE_QUIT)
            return text

    try:
        text = await asyncio.to_thread(drive)
    finally:
        await asyncio.to_thread(pages.stop)
    assert len({report.session_id for report in station.reports}) == 1
    reports = playing(station)
    for report in reports:
        assert 0 < report.buffer_length_ms <= report.remaining_media_ms <= 60_100
        assert {(flow.client_address, flow.client_port) for flow in report.flows} <= set(pages.peers)
        assert {flow.server_port for flow in report.flows} == {pages.port}
    assert reports[-1].remaining_media_ms < reports[0].remaining_media_ms
    assert reports[-1].stall_count == 0
    assert "This video is playing, with" in text
    assert "It arrives over 1 connection" in text
