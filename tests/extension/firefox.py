"""A real Firefox with the built extension and the host, driven over WebDriver BiDi alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import websocket

from .browser import wait_for
from .host import AGENT

PREFERENCES = {
    "media.autoplay.default": 0,
    "media.volume_scale": "0.0",
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
}


class Firefox:
    """One BiDi session."""

    def __init__(self, url: str) -> None:
        self._socket = websocket.create_connection(f"{url}/session", timeout=30, suppress_origin=True)
        self._last = 0
        self.do("session.new", capabilities={})

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its answer; events are passed over."""
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": params}))
        while True:
            answer: dict[str, Any] = json.loads(self._socket.recv())
            if answer.get("id") == self._last:
                assert answer["type"] == "success", answer
                return answer["result"]

    def open(self, url: str) -> str:
        """A new tab in front with this page; returns its context."""
        context: str = self.do("browsingContext.create", type="tab")["context"]
        self.do("browsingContext.navigate", context=context, url=url, wait="complete")
        return context

    def close(self) -> None:
        self._socket.close()


@contextmanager
def firefox(extension: Path, home: Path, station: list[str]) -> Generator[Firefox]:
    """A fresh profile in a home of its own, with the extension, and the host told to it."""
    install = [str(AGENT), "install", "--browser", "firefox", "--dir", str(home), *station]
    subprocess.run(install, check=True, capture_output=True)
    profile = home / "profile"
    profile.mkdir()
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
    (profile / "user.js").write_text("\n".join(lines))
    log = home / "firefox.log"
    command = ["/usr/bin/firefox-esr", "--headless", "--no-remote", "--profile", str(profile)]
    command += ["--remote-debugging-port=0"]
    environment = os.environ | {"HOME": str(home)}
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    try:
        listening = wait_for(lambda: re.search(r"BiDi listening on (ws://\S+)", log.read_text()), 60)
        browser = Firefox(listening.group(1))
        source = {"type": "path", "path": str(extension)}
        assert browser.do("webExtension.install", extensionData=source)["extension"] == "extension@steerline"
        yield browser
        browser.close()
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
