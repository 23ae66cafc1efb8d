"""The extension in a real Chromium: a player in a frame's shadow root, on a page that lies."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import jsonschema
from selenium import webdriver

from steerline.flow.v1 import flow_pb2
from tests.agent.station import Station

from .browser import EXTENSION_ID, Pages, chromium, wait_for
from .host import SCHEMA
from .lies import FRAME, FRAMED, PAGE, check_truth, playing


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


async def test_a_player_in_a_page_that_lies_is_reported_as_it_is(
    tmp_path: Path, station: Station, built: Path, film: Path
) -> None:
    """State, buffer and remaining media are the browser's own, the five-tuple is the film's connection's,
    the popup says so, and the station hears when the page is left."""
    pages = Pages({"/": PAGE, "/frame.html": FRAME}, film, film.stat().st_size // 40)

    def drive() -> str:
        with chromium(built / "chromium", tmp_path, station.arguments) as driver:
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
    check_truth(station, pages)
    assert "This video is playing, with" in text
    assert "It arrives over 1 connection" in text


def host_of(profile: Path) -> int:
    """The process id of this browser's host; waits until there is one."""
    return wait_for(lambda: find_host(profile))


def find_host(profile: Path) -> int:
    """The same, 0 where there is none now."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if (stat.parent / "cmdline").read_bytes().split(b"\0")[1:2] != [b"host"]:
                continue
            parent = stat.read_text().rpartition(")")[2].split()[1]
            if str(profile).encode() in Path(f"/proc/{parent}/cmdline").read_bytes():
                return int(stat.parent.name)
        except OSError:
            continue  # it has just ended
    return 0


async def test_a_host_that_dies_is_started_again_and_without_one_the_web_gets_reports(
    tmp_path: Path, station: Station, built: Path, film: Path
) -> None:
    """The host killed: a new one goes on with the same session. No host any more: the reports go to the
    station's web interface with servers instead of connections, and the popup says what that means."""
    pages = Pages({"/": FRAMED}, film, film.stat().st_size // 40)

    def drive() -> str:
        with chromium(built / "chromium", tmp_path, station.arguments) as driver:
            driver.get(f"http://127.0.0.1:{pages.port}/")
            wait_for(lambda: len(playing(station)) >= 2)
            os.kill(host_of(tmp_path / "profile"), signal.SIGKILL)
            seen = len(station.reports)
            wait_for(lambda: station.streams == 2 and len(station.reports) >= seen + 2)
            settings(driver, f'chrome.storage.local.set({{ stationWeb: "http://127.0.0.1:{pages.port}" }})')
            (tmp_path / "profile/NativeMessagingHosts/steerline.agent.json").unlink()
            os.kill(host_of(tmp_path / "profile"), signal.SIGKILL)
            wait_for(lambda: len(pages.posts) >= 2)
            return look(driver, tmp_path / "popup.png")

    try:
        text = await asyncio.to_thread(drive)
    finally:
        await asyncio.to_thread(pages.stop)
    assert len({report.session_id for report in station.reports}) == 1
    numbers = [report.sequence_number for report in station.reports]
    assert numbers == sorted(set(numbers))
    for post in pages.posts:
        assert post["path"] == "/reports"
        body = {"reports": post["reports"]}
        jsonschema.validate(body, {"$ref": "#/$defs/webRequest", "$defs": SCHEMA["$defs"]})
    last = pages.posts[-1]["reports"][0]
    assert last["session_id"] == station.reports[0].session_id
    assert last["servers"] == [{"address": "127.0.0.1", "port": pages.port}]
    assert "the Steerline program is not on this computer" in text
    assert "It is running low." in text
    assert "Video here comes from 127.0.0.9." in text


def settings(driver: webdriver.Chrome, script: str) -> None:
    """Runs a script on the settings page, and goes back to the film."""
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    driver.get(f"chrome-extension://{EXTENSION_ID}/options.html")
    driver.execute_script(script)
    driver.close()
    driver.switch_to.window(first)
    driver.execute_cdp_cmd("Page.bringToFront", {})
