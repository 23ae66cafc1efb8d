"""A real Chromium that sleeps, and that is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

from steerline.flow.v1 import flow_pb2
from tests.agent.station import Station

from .browser import Pages, chromium, wait_for
from .cost.processes import children
from .lies import PLAIN, playing
from .test_chromium import host_of

ASLEEP_S = 8.0


async def test_a_browser_that_sleeps_wakes_without_a_flood_and_one_that_is_killed_ends(
    tmp_path: Path, station: Station, built: Path, film: Path
) -> None:
    """Browser and host stand still as on a machine asleep: afterwards the session goes on, with no stall of
    that length and no more than a report a second. Killed, with all its processes: the host ends within
    seconds, and the station hears that the viewer has left."""
    pages = Pages({"/": PLAIN}, film, film.stat().st_size // 30)
    woken: list[tuple[int, float]] = []
    gone: list[float] = []

    def drive() -> None:
        with chromium(built / "chromium", tmp_path, station.arguments) as driver:
            driver.get(f"http://127.0.0.1:{pages.port}/")
            wait_for(lambda: len(playing(station)) >= 3)
            host = host_of(tmp_path / "profile")
            everything = children(driver.service.process.pid)[1:]
            assert host in everything
            for pid in everything:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(ASLEEP_S)
            woken.append((len(station.reports), time.monotonic()))
            for pid in everything:
                os.kill(pid, signal.SIGCONT)
            wait_for(lambda: len(station.reports) >= woken[0][0] + 5)
            woken.append((len(station.reports), time.monotonic()))
            gone.append(time.monotonic())
            for pid in everything:
                if pid != host:
                    os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not Path(f"/proc/{host}/exe").exists(), 6)
            gone.append(time.monotonic())

    try:
        await asyncio.to_thread(drive)
    finally:
        await asyncio.to_thread(pages.stop)
    assert len({report.session_id for report in station.reports}) == 1
    numbers = [report.sequence_number for report in station.reports]
    assert numbers == sorted(set(numbers))
    (count, at), (later, end) = woken
    assert later - count <= 3 + 2 * (end - at)
    last = station.reports[-1]
    assert last.player_state == flow_pb2.PLAYER_STATE_QUIT
    assert last.stall_duration_ms < 3000
    assert gone[1] - gone[0] < 5
