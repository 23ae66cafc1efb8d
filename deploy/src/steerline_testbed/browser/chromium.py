"""Starts Chromium (or a relative of it) with the extension, driven by Selenium and its chromedriver."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service

from steerline_testbed.browser.bidi import Driven
from steerline_testbed.browser.profile import Home
from steerline_testbed.browser.programs import Programs

_WINDOW = "--window-size=800,780"
_SHOWN = "--ozone-platform-hint=auto"
_WELCOME_PATIENCE_S = 5.0
_FLAGS = (
    # The testbed is root's and in a namespace of its own; Chromium refuses root with its sandbox.
    "--no-sandbox",
    # A machine without a graphics card: pictures are drawn by the processor either way.
    "--disable-gpu",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=Translate,OptimizationHints,MediaRouter",
    "--password-store=basic",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
    # Half a gigabyte of video would go through the disk of the run, which is memory.
    "--disk-cache-size=1",
    _WINDOW,
)
# What chromedriver would add: a viewer's browser slows down the timers of tabs that nobody sees.
_NOT_THE_DRIVERS = ("enable-logging", "disable-background-timer-throttling", "disable-renderer-backgrounding")


def start_chromium(
    programs: Programs, home: Home, log: Path, shown: bool = False, flags: Sequence[str] = ()
) -> Driven:
    """A fresh Chromium with the extension and one blank tab. Raises WebDriverException."""
    assert programs.driver is not None
    options = webdriver.ChromeOptions()
    options.binary_location = str(programs.browser)
    for flag in (*_FLAGS, *flags, f"--user-data-dir={home.profile}", _SHOWN if shown else "--headless=new"):
        options.add_argument(flag)
    options.enable_bidi = True
    options.enable_webextensions = True
    options.add_experimental_option("excludeSwitches", list(_NOT_THE_DRIVERS))  # pyright: ignore[reportUnknownMemberType]
    service = Service(
        str(programs.driver),
        service_args=["--log-level=WARNING"],
        log_output=str(log),
        env=home.environment(shown),
        # Away from the worker's process group: whoever ends the worker gives it the time to end the browser.
        popen_kw={"start_new_session": True},
    )
    driver = webdriver.Chrome(options=options, service=service)
    capabilities = cast("dict[str, Any]", driver.capabilities)  # pyright: ignore[reportUnknownMemberType]
    process_id = int(capabilities.get("goog:processID", 0))
    browser = Driven(
        str(capabilities["browserName"]),
        str(capabilities["browserVersion"]),
        driver.browsing_context,
        driver.script,
        alive=lambda: service.process.poll() is None and (process_id == 0 or _lives(process_id)),
        end=lambda: _end(driver),
    )
    driver.webextension.install(path=str(home.extension))
    _leave_welcome(browser)
    return browser


def _leave_welcome(browser: Driven) -> None:
    """The extension's welcome comes up in front, once; the viewer closes it."""
    (first, *_) = browser.tabs()
    until_s = time.monotonic() + _WELCOME_PATIENCE_S
    while len(tabs := browser.tabs()) < 2 and time.monotonic() < until_s:
        time.sleep(0.05)
    for tab in tabs:
        if tab != first:
            browser.close_tab(tab)
    browser.activate(first)


def _lives(process_id: int) -> bool:
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def _end(driver: webdriver.Chrome) -> None:
    with contextlib.suppress(WebDriverException, OSError):  # it may be gone already
        driver.quit()
