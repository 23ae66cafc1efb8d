"""Browsers without the native host, and a real station: what the extension posts is taken, and answered."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from steerline_appstation.application import Ready, serve
from steerline_appstation.clock import Clock
from steerline_appstation.settings import Settings
from tests.appstation.support import Controller, http_get

from .browser import Pages, build_extension, chromium, make_film, wait_for
from .firefox import Firefox, firefox
from .lies import PLAIN
from .test_chromium import look, settings

NOBODY = ["--station", "http://127.0.0.1:9"]


@pytest.fixture
async def ready(tmp_path: Path) -> AsyncIterator[Ready]:
    """A station with a web listener on loopback, connected to a controller."""
    controller = Controller()
    await controller.start()
    values: dict[str, Any] = {
        "steering": f"127.0.0.1:{controller.port}",
        "listen": {"reports": "127.0.0.1:0", "rest": "127.0.0.1:0", "web": "127.0.0.1:0"},
        "redis": {"directory": str(tmp_path / "redis")},
    }
    started: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    station = serve(
        Settings.model_validate(values),
        clock=Clock(),
        jitter=random.Random(1),
        ready=started.set_result,
        stop=stop,
    )
    task = asyncio.create_task(station)
    yield await started
    stop.set()
    await task
    await controller.stop()


async def test_chromium_reports_to_a_real_station(tmp_path: Path, ready: Ready) -> None:
    """With the site's permission and without it (then by CORS), reports count, and the popup hears back."""
    loop = asyncio.get_running_loop()
    pages = await film(tmp_path)
    extension = await asyncio.to_thread(build_extension, tmp_path / "extension")
    port = ready.web.rpartition(":")[2]

    def seen() -> list[dict[str, Any]]:
        return asyncio.run_coroutine_threadsafe(sessions(ready), loop).result(5)

    def drive() -> str:
        with chromium(extension, tmp_path, NOBODY) as driver:
            (tmp_path / "profile/NativeMessagingHosts/steerline.agent.json").unlink()
            # The build allows 127.0.0.1 alone: to localhost it may speak only as the station's CORS lets it.
            settings(driver, f'chrome.storage.local.set({{ stationWeb: "http://localhost:{port}" }})')
            driver.get(f"http://127.0.0.1:{pages.port}/")
            first = wait_for(lambda: [s for s in seen() if s["report_count"] >= 3])
            settings(driver, f'chrome.storage.local.set({{ stationWeb: "http://127.0.0.1:{port}" }})')
            count = first[0]["report_count"]
            wait_for(lambda: [s for s in seen() if s["report_count"] >= count + 3])
            return look(driver, tmp_path / "popup.png")

    try:
        text = await asyncio.to_thread(drive)
        (session,) = await sessions(ready)
    finally:
        await asyncio.to_thread(pages.stop)
    check(session, pages)
    assert "the Steerline program is not on this computer" in text


async def test_firefox_reports_to_a_real_station(tmp_path: Path, ready: Ready) -> None:
    """The same, with the origin that Firefox gives its extensions."""
    loop = asyncio.get_running_loop()
    pages = await film(tmp_path)
    extension = (await asyncio.to_thread(build_extension, tmp_path / "extension")).parent / "firefox"
    port = ready.web.rpartition(":")[2]

    def seen() -> list[dict[str, Any]]:
        return asyncio.run_coroutine_threadsafe(sessions(ready), loop).result(5)

    def drive() -> None:
        with firefox(extension, tmp_path, NOBODY) as browser:
            (tmp_path / ".mozilla/native-messaging-hosts/steerline.agent.json").unlink()
            page = wait_for(lambda: welcome(browser))
            count = 0
            for host in ("localhost", "127.0.0.1"):
                browser.do(
                    "script.evaluate",
                    expression=f'chrome.storage.local.set({{ stationWeb: "http://{host}:{port}" }})',
                    target={"context": page},
                    awaitPromise=True,
                )
                if not count:
                    browser.open(f"http://127.0.0.1:{pages.port}/")
                least = count + 3
                count = wait_for(lambda least=least: [s for s in seen() if s["report_count"] >= least])[0][
                    "report_count"
                ]

    try:
        await asyncio.to_thread(drive)
        (session,) = await sessions(ready)
    finally:
        await asyncio.to_thread(pages.stop)
    check(session, pages)


def welcome(browser: Firefox) -> str:
    """The settings page, which comes up when the extension is installed. (BiDi opens none itself.)"""
    tabs = browser.do("browsingContext.getTree")["contexts"]
    return next((tab["context"] for tab in tabs if tab["url"].startswith("moz-extension://")), "")


async def film(tmp_path: Path) -> Pages:
    path = tmp_path / "film.mp4"
    await asyncio.to_thread(make_film, path, 60)
    return Pages({"/": PLAIN}, path, path.stat().st_size // 40)


async def sessions(ready: Ready) -> list[dict[str, Any]]:
    """Live sessions, as the operator sees them."""
    return (await http_get(ready.rest, "/sessions"))[1]


def check(session: dict[str, Any], pages: Pages) -> None:
    """The film's server, over TCP or QUIC, from the address that the station saw."""
    assert session["address"] == "127.0.0.1"
    assert session["player_name"] == "html5-video"
    ends = [
        (f["protocol"], f["client_port"], f["server_address"], f["server_port"]) for f in session["flows"]
    ]
    assert ends == [(6, 0, "127.0.0.1", pages.port), (17, 0, "127.0.0.1", 0)]
