"""Starts Firefox with the extension, driven by Selenium's BiDi modules over Firefox's own WebDriver BiDi.

No geckodriver: it only translates classic WebDriver commands, of which none is used here, and no
distribution that is supported packages it. Firefox serves BiDi itself (--remote-debugging-port).
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selenium.webdriver.common.bidi.browsing_context import BrowsingContext
from selenium.webdriver.common.bidi.script import Script
from selenium.webdriver.common.bidi.session import Session
from selenium.webdriver.common.bidi.webextension import WebExtension
from selenium.webdriver.remote.websocket_connection import WebSocketConnection

from steerline_testbed.browser.bidi import Driven
from steerline_testbed.browser.profile import Home
from steerline_testbed.browser.programs import Programs
from steerline_testbed.experiment.errors import ExperimentError

_START_PATIENCE_S = 60.0
# A loaded machine takes its time with the first.
_COMMAND_TIMEOUT_S = 60.0
_ANSWER_INTERVAL_S = 0.02
_END_PATIENCE_S = 1.2
PREFERENCES: Mapping[str, Any] = {
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    # Half a gigabyte of video would go through the disk of the run, which is memory.
    "browser.cache.disk.enable": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.getAddons.cache.enabled": False,
    "extensions.systemAddon.update.enabled": False,
    "media.autoplay.blocking_policy": 0,
    "media.autoplay.default": 0,
    "media.volume_scale": "0.0",
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.dns.disablePrefetch": True,
    "network.prefetch-next": False,
    "toolkit.telemetry.enabled": False,
    "toolkit.telemetry.unified": False,
}


def start_firefox(
    programs: Programs,
    home: Home,
    log: Path,
    shown: bool = False,
    preferences: Mapping[str, Any] | None = None,
) -> Driven:
    """A fresh Firefox with the extension and one blank tab. Raises WebDriverException, ExperimentError."""
    chosen = {**PREFERENCES, **(preferences or {})}
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in chosen.items()]
    (home.profile / "user.js").write_text("\n".join(lines))
    command = [
        str(programs.browser),
        "--no-remote",
        "--profile",
        str(home.profile),
        "--remote-debugging-port=0",
    ]
    command += ["--width", "800", "--height", "780"]
    command += [] if shown else ["--headless"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=home.environment(shown), start_new_session=True
        )
    try:
        connection = WebSocketConnection(
            f"{_address(process, log)}/session", _COMMAND_TIMEOUT_S, _ANSWER_INTERVAL_S
        )
        session: Any = Session(connection)
        facts = session.new(capabilities={"alwaysMatch": {"acceptInsecureCerts": True}})["capabilities"]
        contexts: Any = BrowsingContext(connection)
        browser = Driven(
            str(facts["browserName"]),
            str(facts["browserVersion"]),
            contexts,
            Script(connection),
            alive=lambda: process.poll() is None,
            end=lambda: _end(process),
        )
        extensions: Any = WebExtension(connection)
        before = browser.tabs()
        extensions.install(path=str(home.extension))
        _leave_welcome(browser, before)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return browser


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    until_s = time.monotonic() + _START_PATIENCE_S
    while True:
        text = log.read_text(errors="replace")
        if found := re.search(r"BiDi listening on (ws://\S+)", text):
            return found.group(1)
        if process.poll() is not None or time.monotonic() > until_s:
            tail = "\n".join(text.splitlines()[-5:])
            raise ExperimentError(f"Firefox does not serve WebDriver BiDi; its log {log} ends:\n{tail}")
        time.sleep(0.05)


def _leave_welcome(browser: Driven, before: list[str]) -> None:
    """The extension's welcome comes up in front where this browser shows it."""
    until_s = time.monotonic() + 3.0
    while len(tabs := browser.tabs()) <= len(before) and time.monotonic() < until_s:
        time.sleep(0.05)
    for tab in tabs:
        if tab not in before:
            browser.close_tab(tab)
    browser.activate(before[0])


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_END_PATIENCE_S)
    if process.poll() is None:
        process.kill()
        process.wait()
