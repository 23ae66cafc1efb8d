"""A real Chromium with the built extension and the host, and a web server on loopback for its pages."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from .host import AGENT, ROOT

EXTENSION = ROOT / "client-agent" / "extension"
EXTENSION_ID = "dhhahajopihmhogjpodcniomgmlejjoi"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
)


def build_extension(out: Path, *other_hosts: str) -> Path:
    """The Chromium build, with loopback allowed at once: nobody answers the browser's question here."""
    command = ["node", "build/build.mjs", "--out", str(out)]
    for host in ("127.0.0.1", *other_hosts):
        command += ["--also-allow", f"*://{host}/*"]
    subprocess.run(command, cwd=EXTENSION, check=True, capture_output=True, timeout=60)
    return out / "chromium"


def make_film(path: Path, seconds: int) -> None:
    """A plain MP4 (H.264, AAC), its index in front."""
    picture, sound = (
        f"testsrc=size=320x180:rate=24:duration={seconds}",
        f"sine=frequency=440:duration={seconds}",
    )
    command = ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound]
    command += [
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-b:v",
        "600k",
        "-maxrate",
        "600k",
        "-bufsize",
        "600k",
    ]
    command += ["-c:a", "aac", "-movflags", "+faststart", str(path)]
    subprocess.run(command, check=True, timeout=120)


class Pages:
    """Serves texts, and one film, slowly enough that its connection lives. `peers` are the film's
    clients (`asked`: each with the path), `posts` what came to its web interface for reports."""

    def __init__(self, texts: dict[str, str], film: Path, bytes_per_s: int) -> None:
        peers: list[tuple[str, int]] = []
        posts: list[dict[str, Any]] = []
        asked: list[tuple[str, int]] = []
        stopped = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version: ClassVar[str] = "HTTP/1.1"  # pyright: ignore[reportIncompatibleVariableOverride]

            def do_GET(self) -> None:
                if self.path.partition("?")[0] == "/film.mp4":
                    self._film()
                    return
                body = texts.get(self.path.partition("?")[0], "").encode()
                self.send_response(200 if body else 404)
                self.send_header("content-type", "text/html; charset=utf-8")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["content-length"]))
                posts.append({"path": self.path} | json.loads(text))
                reports = posts[-1]["reports"]
                news = [
                    {"type": "assessment", "session_id": r["session_id"], "critical": True} for r in reports
                ]
                body = json.dumps({"messages": news}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _film(self) -> None:
                data = film.read_bytes()
                start = int(self.headers.get("range", "bytes=0-").removeprefix("bytes=").split("-")[0])
                peers.append(self.client_address)
                asked.append((self.path, self.client_address[1]))
                self.send_response(206)
                self.send_header("content-type", "video/mp4")
                self.send_header("accept-ranges", "bytes")
                self.send_header("content-range", f"bytes {start}-{len(data) - 1}/{len(data)}")
                self.send_header("content-length", str(len(data) - start))
                self.end_headers()
                piece = bytes_per_s // 10
                try:
                    for at in range(start, len(data), piece):
                        self.wfile.write(data[at : at + piece])
                        if stopped.wait(0.1):
                            return
                except OSError:
                    pass  # the browser has left

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.peers = peers
        self.asked = asked
        self.posts = posts
        self._stopped = stopped
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def chromium(
    extension: Path, home: Path, station: list[str], *more_flags: str
) -> Generator[webdriver.Chrome]:
    """A fresh profile with the extension, and the host told to it."""
    profile = home / "profile"
    install = [
        str(AGENT),
        "install",
        "--browser",
        "chromium",
        "--dir",
        str(home),
        "--user-data-dir",
        str(profile),
    ]
    subprocess.run([*install, *station], check=True, capture_output=True)
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*FLAGS, *more_flags, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.enable_bidi = True
    options.enable_webextensions = True
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        installed = driver.webextension.install(path=str(extension))
        assert installed["extension"] == EXTENSION_ID, installed
        # The welcome page comes up in front, and a browser loads no media in tabs that were never seen.
        wait_for(lambda: driver.execute_script("return document.hidden"))
        close_others(driver)
        yield driver
    finally:
        driver.quit()


def close_others(driver: webdriver.Chrome) -> None:
    """Leaves the tab that is driven, in front."""
    kept = driver.current_window_handle
    for other in set(driver.window_handles) - {kept}:
        driver.switch_to.window(other)
        driver.close()
    driver.switch_to.window(kept)
    driver.execute_cdp_cmd("Page.bringToFront", {})


def wait_for(what: Any, timeout_s: float = 45.0) -> Any:
    """Waits until `what()` is true, and returns it."""
    end = time.monotonic() + timeout_s
    while not (result := what()):
        assert time.monotonic() < end, f"not within {timeout_s} s"
        time.sleep(0.1)
    return result
