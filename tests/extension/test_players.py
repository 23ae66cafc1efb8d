"""Players as pages build them, in a real Chromium: fed by scripts from other hosts; in tabs; too many."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from selenium import webdriver

from steerline.flow.v1 import flow_pb2
from tests.agent.station import Station

from .browser import EXTENSION_ID, Pages, chromium, wait_for
from .cdn import PLAYER, Cdn, make_fragments
from .lies import playing

PIECE = 150_000
TAB = """<!doctype html><title>tab</title><video id="film" autoplay></video>
<script>film.src = "/film.mp4" + location.search;</script>"""
# Sounds that play for ever, one of no seconds, and one whose page says that it lasts for ever.
CROWD = """<!doctype html><title>crowd</title><body><script>
const wav = (samples) => {
  const bytes = new DataView(new ArrayBuffer(44 + samples));
  const text = (at, word) => [...word].forEach((letter, n) => bytes.setUint8(at + n, letter.charCodeAt(0)));
  text(0, "RIFF"); bytes.setUint32(4, 36 + samples, true); text(8, "WAVEfmt ");
  bytes.setUint32(16, 16, true); bytes.setUint16(20, 1, true); bytes.setUint16(22, 1, true);
  bytes.setUint32(24, 8000, true); bytes.setUint32(28, 8000, true); bytes.setUint16(32, 1, true);
  bytes.setUint16(34, 8, true); text(36, "data"); bytes.setUint32(40, samples, true);
  return URL.createObjectURL(new Blob([bytes], { type: "audio/wav" }));
};
const [some, none] = [wav(40_000), wav(0)];
for (let n = 0; n < 500; n += 1) {
  const sound = new Audio(n % 2 ? some : none);
  sound.loop = true;
  sound.autoplay = true;
  Object.defineProperty(sound, "duration", { value: Infinity });
  Object.defineProperty(sound, "buffered", { get() { throw new Error("no"); } });
  document.body.append(sound);
}
</script>"""


async def test_a_player_fed_by_a_worker_from_other_hosts(
    tmp_path: Path, station: Station, built: Path
) -> None:
    """Its connections are those to the hosts of the pieces, not to the page's; in mid-film they are of
    another host, and a report says so within a second. A stream without an end has no remaining media."""
    film = tmp_path / "film.mp4"
    await asyncio.to_thread(make_fragments, film, 60)
    hosts = [Cdn(address, film.read_bytes()) for address in ("127.0.0.2", "127.0.0.3")]
    pages = Pages({"/": PLAYER}, film, 1)
    plan = {"hosts": [host.host for host in hosts], "change": 5, "piece": PIECE, "goal": 6}
    buffers: list[tuple[float, float]] = []

    def drive() -> None:
        with chromium(built / "chromium", tmp_path, station.arguments) as driver:
            driver.get(f"http://127.0.0.1:{pages.port}/#{quote(json.dumps(plan))}")
            wait_for(lambda: hosts[1].asked and playing(station)[-3:])
            for _ in range(8):
                buffers.append((time.monotonic(), driver.execute_script("return ahead()")))
                time.sleep(0.5)

    try:
        await asyncio.to_thread(drive)
    finally:
        for server in (*hosts, pages):
            await asyncio.to_thread(server.stop)
    reports = list(zip(station.reports, [at for _, at in station.arrivals], strict=True))
    assert len({report.session_id for report, _ in reports}) == 1
    of_host = [{port for port, _ in host.asked} for host in hosts]
    for report, _ in reports:
        ends = {(flow.server_address, flow.client_port) for flow in report.flows}
        assert ends <= {(f"127.0.0.{n + 2}", port) for n in range(2) for port in of_host[n]}
    changed_at = hosts[1].asked[0][1]
    told_at = min(at for report, at in reports if any(f.server_address == "127.0.0.3" for f in report.flows))
    # Half a second on a machine that has nothing else to do.
    assert told_at - changed_at < 2.5
    last = [report for report, _ in reports if report.player_state == flow_pb2.PLAYER_STATE_PLAYING][-1]
    assert not last.HasField("remaining_media_ms")
    assert last.stall_count == 0
    for at, buffer_s in buffers:
        nearest = min(reports, key=lambda one: abs(one[1] - at))
        assert abs(nearest[0].buffer_length_ms / 1000 - buffer_s) < 2.5


def sessions_of_tabs(driver: webdriver.Chrome) -> list[dict[str, Any]]:
    """What the popup would be told of each tab: address, session, connections."""
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    driver.get(f"chrome-extension://{EXTENSION_ID}/options.html")
    found: list[dict[str, Any]] = driver.execute_async_script("""
        const done = arguments[0];
        chrome.tabs.query({}).then(async (tabs) => {
          const ask = ({ id }) => chrome.runtime.sendMessage({ type: "state", tab: id });
          const states = await Promise.all(tabs.map(ask));
          done(states.flatMap(({ views }, n) => views.map((view) => ({ ...view, url: tabs[n].url }))));
        });
    """)
    driver.close()
    driver.switch_to.window(first)
    return found


async def test_tabs_with_one_server_have_their_own_sessions(
    tmp_path: Path, station: Station, built: Path, film: Path
) -> None:
    """Two tabs play from one server, a third is paused: three sessions, each with its own connection. (That
    two which both fetch all the time claim each other's as well is what nobody can tell apart.)"""
    pages = Pages({"/": TAB}, film, film.stat().st_size // 40)

    def drive() -> list[dict[str, Any]]:
        with chromium(built / "chromium", tmp_path, station.arguments) as driver:
            for tab in (1, 2, 3):
                if tab > 1:
                    driver.switch_to.new_window("tab")
                driver.get(f"http://127.0.0.1:{pages.port}/?{tab}")
                wait_for(lambda: driver.execute_script("return film.currentTime > 0.5"))
            driver.execute_script("film.pause()")
            wait_for(lambda: station.reports[-1].player_state == flow_pb2.PLAYER_STATE_PAUSED)
            time.sleep(3)
            return sessions_of_tabs(driver)

    try:
        views = await asyncio.to_thread(drive)
    finally:
        await asyncio.to_thread(pages.stop)
    assert len({report.session_id for report in station.reports}) == 3
    by_tab = {view["url"].partition("?")[2]: view for view in views}
    states = [by_tab[tab]["report"]["player_state"] for tab in "123"]
    assert states == ["PLAYING", "PLAYING", "PAUSED"]
    own = {path.partition("?")[2]: port for path, port in pages.asked}
    for tab, view in by_tab.items():
        assert own[tab] in {flow["client_port"] for flow in view["flows"]}


async def test_a_crowd_of_players_is_bounded(tmp_path: Path, station: Station, built: Path) -> None:
    """Of 500 sounds, half of them empty, on a page that lies about them, few are sessions at a time, and each
    report is within the contract."""
    pages = Pages({"/": CROWD}, tmp_path, 1)

    def drive() -> int:
        with chromium(built / "chromium", tmp_path, station.arguments) as driver:
            driver.get(f"http://127.0.0.1:{pages.port}/")
            wait_for(lambda: len(station.reports) >= 40)
            count = len(station.reports)
            time.sleep(2)
            return len(station.reports) - count

    try:
        rate = await asyncio.to_thread(drive)
    finally:
        await asyncio.to_thread(pages.stop)
    alive: set[str] = set()
    for report in station.reports:
        alive.add(report.session_id)
        if report.player_state == flow_pb2.PLAYER_STATE_QUIT:
            alive.remove(report.session_id)
        assert len(alive) <= 16
    assert rate <= 16 * 2 * 2
    for report in station.reports:
        assert 0 <= report.buffer_length_ms <= 5_100
        assert 0 <= report.remaining_media_ms <= 5_100
