"""The extension in a real Firefox: the same player on the same page as in Chromium."""

from __future__ import annotations

import asyncio
from pathlib import Path

from steerline.flow.v1 import flow_pb2
from tests.agent.station import Station

from .browser import Pages, wait_for
from .firefox import firefox
from .lies import FRAME, PAGE, check_truth, playing


async def test_a_player_in_a_page_that_lies_is_reported_as_it_is(
    tmp_path: Path, station: Station, built: Path, film: Path
) -> None:
    """State, buffer and remaining media are the browser's own, the five-tuple is the film's connection's,
    and the station hears when the tab is closed."""
    pages = Pages({"/": PAGE, "/frame.html": FRAME}, film, film.stat().st_size // 40)

    def drive() -> None:
        with firefox(built / "firefox", tmp_path, station.arguments) as browser:
            tab = browser.open(f"http://127.0.0.1:{pages.port}/")
            wait_for(lambda: len(playing(station)) >= 5)
            browser.do("browsingContext.close", context=tab)
            wait_for(lambda: station.reports[-1].player_state == flow_pb2.PLAYER_STATE_QUIT)

    try:
        await asyncio.to_thread(drive)
    finally:
        await asyncio.to_thread(pages.stop)
    check_truth(station, pages)
