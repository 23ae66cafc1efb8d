"""A small DASH film on a web server of loopback, in a page with dash.js as it comes."""

from __future__ import annotations

import functools
import shutil
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from tests.extension.host import ROOT

DASH_JS = ROOT / "node_modules" / "dashjs" / "dist" / "modern" / "umd" / "dash.all.min.js"
PAGE = """<!doctype html><meta charset="utf-8"><title>film</title><video id="film" autoplay></video>
<script src="dash.js"></script><script>
dashjs.MediaPlayer().create().initialize(document.getElementById("film"), "film.mpd", true);
</script>"""


def make(folder: Path, seconds: int) -> None:
    """H.264 and AAC in segments of 2 s. Raises FileNotFoundError without dash.js (npm ci)."""
    if not DASH_JS.exists():
        raise FileNotFoundError(f"{DASH_JS}: run `make setup`, which installs the players that pages use")
    shutil.copy(DASH_JS, folder / "dash.js")
    (folder / "index.html").write_text(PAGE)
    picture, sound = (
        f"testsrc=size=640x360:rate=25:duration={seconds}",
        f"sine=frequency=440:duration={seconds}",
    )
    command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound]
    command += ["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "800k", "-g", "50", "-keyint_min", "50"]
    command += ["-c:a", "aac", "-f", "dash", "-seg_duration", "2", str(folder / "film.mpd")]
    subprocess.run(command, check=True, timeout=300)


class Server:
    """Serves a folder over HTTP/1.1 until it is stopped."""

    def __init__(self, folder: Path) -> None:
        class Handler(SimpleHTTPRequestHandler):
            protocol_version: ClassVar[str] = "HTTP/1.1"  # pyright: ignore[reportIncompatibleVariableOverride]

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
        )
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
