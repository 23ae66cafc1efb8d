"""Hosts of loopback that serve pieces of a film, and a page that plays them (Media Source Extensions)."""

from __future__ import annotations

import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

# Pieces come by a dedicated worker; the first `change` from one host, the rest from another.
PLAYER = """<!doctype html><meta charset="utf-8"><title>player</title>
<video id="film" autoplay></video><script>
const { hosts, change, piece, goal } = JSON.parse(decodeURIComponent(location.hash.slice(1)));
const film = document.getElementById("film");
const code = `onmessage = async ({ data: url }) => {
  const bytes = await (await fetch(url)).arrayBuffer();
  postMessage(bytes, [bytes]);
}`;
const worker = new Worker(URL.createObjectURL(new Blob([code])));
const get = (url) => new Promise((then) => {
  worker.onmessage = ({ data }) => then(data);
  worker.postMessage(url);
});
const once = (of, name) => new Promise((then) => of.addEventListener(name, then, { once: true }));
globalThis.ahead = () => film.buffered.length > 0 ? film.buffered.end(0) - film.currentTime : 0;
(async () => {
  const media = new MediaSource();
  film.src = URL.createObjectURL(media);
  await once(media, "sourceopen");
  const buffer = media.addSourceBuffer('video/mp4; codecs="avc1.42c01e,mp4a.40.2"');
  for (let n = 0; ; n += 1) {
    while (ahead() > goal) await new Promise((then) => setTimeout(then, 100));
    const host = n < change ? hosts[0] : hosts[1];
    const bytes = await get(`http://${host}/piece?from=${n * piece}&to=${(n + 1) * piece}`);
    if (bytes.byteLength === 0) return;
    buffer.appendBuffer(bytes);
    await once(buffer, "updateend");
    if (media.duration !== Infinity && film.buffered.length > 0) media.duration = Infinity;
  }
})();
</script>"""


def make_fragments(path: Path, seconds: int) -> None:
    """A fragmented MP4 (H.264 baseline, AAC), a fragment each second."""
    picture, sound = (
        f"testsrc=size=320x180:rate=24:duration={seconds}",
        f"sine=frequency=440:duration={seconds}",
    )
    command = ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound]
    command += ["-c:v", "libx264", "-preset", "ultrafast", "-profile:v", "baseline", "-pix_fmt", "yuv420p"]
    command += ["-g", "24", "-b:v", "600k", "-minrate", "600k", "-maxrate", "600k", "-bufsize", "300k"]
    command += ["-nal-hrd", "cbr", "-c:a", "aac", "-movflags", "frag_keyframe+empty_moov+default_base_moof"]
    subprocess.run([*command, str(path)], check=True, timeout=120)


class Cdn:
    """Serves any part of one file to pages of other hosts. `asked`: who asked, and when (monotonic clock)."""

    def __init__(self, address: str, data: bytes) -> None:
        asked: list[tuple[int, float]] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version: ClassVar[str] = "HTTP/1.1"  # pyright: ignore[reportIncompatibleVariableOverride]

            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                body = data[int(query["from"][0]) : int(query["to"][0])]
                asked.append((self.client_address[1], time.monotonic()))
                self.send_response(200)
                self.send_header("content-type", "video/mp4")
                self.send_header("access-control-allow-origin", "*")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.asked = asked
        self._server = ThreadingHTTPServer((address, 0), Handler)
        self._server.daemon_threads = True
        self.host = f"{address}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
