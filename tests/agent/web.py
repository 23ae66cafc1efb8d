"""A small web server with a film of dummy bytes: it throttles, closes, fails and dies on order."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from dataclasses import dataclass, field

BLOCK = 4096


@dataclass(frozen=True)
class Film:
    """A film as its MPD tells it: lengths in seconds, rates in bits per second."""

    duration_s: float = 60.0
    segment_s: float = 1.0
    video_bps: dict[int, int] = field(default_factory=lambda: {480: 2_600_000, 360: 750_000})
    audio_bps: int = 128_000

    def mpd(self) -> str:
        """The MPD, with numbers for video and a timeline for sound."""
        renditions = "".join(
            f'<Representation id="v{height}" bandwidth="{rate}" height="{height}" codecs="avc1.64001f"/>'
            for height, rate in self.video_bps.items()
        )
        count = round(self.duration_s / self.segment_s)
        ticks = round(48_000 * self.segment_s)
        return f"""<?xml version="1.0" encoding="UTF-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT{self.duration_s}S"
     minBufferTime="PT2S" profiles="urn:mpeg:dash:profile:isoff-live:2011">
 <Period>
  <AdaptationSet contentType="video" mimeType="video/mp4" segmentAlignment="true">
   <SegmentTemplate timescale="1000" duration="{round(self.segment_s * 1000)}" startNumber="1"
     initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/$Number%04d$.m4s"/>
   {renditions}
  </AdaptationSet>
  <AdaptationSet contentType="audio" mimeType="audio/mp4" lang="en">
   <SegmentTemplate timescale="48000" initialization="$RepresentationID$/init.mp4"
     media="$RepresentationID$/$Time$.m4s">
    <SegmentTimeline><S t="0" d="{ticks}" r="{count - 1}"/></SegmentTimeline>
   </SegmentTemplate>
   <Representation id="snd" bandwidth="{self.audio_bps}" codecs="mp4a.40.2"/>
  </AdaptationSet>
 </Period>
</MPD>"""

    def size(self, path: str) -> int | None:
        """How long a file is; none where there is no such file."""
        folder, _, name = path.strip("/").partition("/")
        rates = {"snd": self.audio_bps} | {f"v{height}": rate for height, rate in self.video_bps.items()}
        if folder not in rates or "/" in name:
            return None
        if name == "init.mp4":
            return 800
        return round(rates[folder] * self.segment_s / 8) if name.endswith(".m4s") else None


class Web:
    """The server. Change its attributes while it runs; `connections` and `requests` tell what came."""

    def __init__(self, film: Film) -> None:
        self.film = film
        self.rate_bps = 0
        """All connections together; 0: as fast as it goes."""
        self.requests_per_connection = 1_000_000
        self.closes_silently = False
        """After the last of `requests_per_connection`: no "Connection: close", and no answer to one more."""
        self.idle_timeout_s = 75.0
        self.status: dict[str, int] = {}
        """Answers a path with this status instead."""
        self.break_off: set[str] = set()
        """Paths whose answer breaks off in the middle, once."""
        self.files: dict[str, bytes] = {}
        self.connections: list[tuple[str, int]] = []
        self.open: set[tuple[str, int]] = set()
        self.requests: list[tuple[tuple[str, int], str]] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._host = "127.0.0.1"
        self._tls: ssl.SSLContext | None = None
        self._free_at = 0.0

    @property
    def url(self) -> str:
        """Where the MPD is."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}/film.mpd"

    async def start(self, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        """Listens; after `die` on the same port again."""
        self._host, self._tls = host, tls
        self._server = await asyncio.start_server(
            self._accept, host, self.port, ssl=tls, reuse_address=True, backlog=512
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def die(self) -> None:
        """Stops listening and resets every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        peer: tuple[str, int] = writer.get_extra_info("peername")[:2]
        self.connections.append(peer)
        self.open.add(peer)
        try:
            await self._serve(reader, writer, peer)
        except (asyncio.CancelledError, ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass
        finally:
            self._tasks.discard(task)
            self.open.discard(peer)
            writer.transport.abort() if task.cancelling() else writer.close()
            with contextlib.suppress(Exception):
                async with asyncio.timeout(1):
                    await writer.wait_closed()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: tuple[str, int]
    ) -> None:
        for left in range(self.requests_per_connection - 1, -1, -1):
            async with asyncio.timeout(self.idle_timeout_s):
                head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            self.requests.append((peer, path))
            await self._answer(writer, path, last=left == 0 and not self.closes_silently)
        if self.closes_silently:
            async with asyncio.timeout(self.idle_timeout_s):
                await reader.readuntil(b"\r\n\r\n")

    async def _answer(self, writer: asyncio.StreamWriter, path: str, *, last: bool) -> None:
        status = self.status.get(path, 200)
        size = self.film.size(path)
        body = self.film.mpd().encode() if path == "/film.mpd" else self.files.get(path)
        if body is None and size is None and status == 200:
            status = 404
        if status != 200:
            body, size = b"no\n", None
        length = len(body) if body is not None else size or 0
        close = "Connection: close\r\n" if last else ""
        location = f"Location: {path}?moved\r\n" if status in (301, 302) else ""
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{location}{close}\r\n".encode())
        if body is not None:
            writer.write(body)
        else:
            breaks = path in self.break_off
            self.break_off.discard(path)
            await self._send(writer, length // 2 if breaks else length)
            if breaks:
                raise ConnectionResetError
        await writer.drain()

    async def _send(self, writer: asyncio.StreamWriter, length: int) -> None:
        """Random-like bytes; the connections take turns at the one line of `rate_bps`."""
        loop = asyncio.get_running_loop()
        while length > 0:
            block = min(length, BLOCK if self.rate_bps else 65536)
            if self.rate_bps:
                self._free_at = max(self._free_at, loop.time() - 0.02) + block * 8 / self.rate_bps
                await asyncio.sleep(max(0.0, self._free_at - loop.time()))
            writer.write(b"\xa5" * block)
            await writer.drain()
            length -= block
