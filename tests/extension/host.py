"""The native messaging host as a child, spoken to as a browser does; and a server that media comes from."""

from __future__ import annotations

import asyncio
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
AGENT = Path(os.environ.get("STEERLINE_AGENT", ROOT / "target" / "release" / "steerline-agent"))
SCHEMA: dict[str, Any] = json.loads(
    (ROOT / "contract" / "schema" / "native-messaging.schema.json").read_text()
)

Message = dict[str, Any]


def frame(message: Message) -> bytes:
    """One message on the pipe."""
    text = json.dumps(message).encode()
    return struct.pack("=I", len(text)) + text


def report(session_id: str, number: int, servers: list[tuple[str, int]], **other: Any) -> Message:
    """A report as the extension sends it."""
    fields: Message = {
        "session_id": session_id,
        "sequence_number": number,
        "timestamp_ms": 1_800_000_000_000 + number * 1000,
        "cause": "PERIODIC",
        "player_state": "PLAYING",
        "buffer_length_ms": 12_000,
        "encoded_bitrate_kbps": 2600,
        "target_buffer_ms": 0,
        "starved": False,
        "playback_rate": 1,
        "remaining_media_ms": 300_000,
        "stall_count": 0,
        "stall_duration_ms": 0,
        "player_name": "html5-video",
        "servers": [{"address": address, "port": port} for address, port in servers],
    }
    return {"type": "report", "report": fields | other}


class Host:
    """One running host. This process is its browser."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.messages: list[Message] = []
        self._reading = asyncio.create_task(self._read())

    @staticmethod
    async def start(*arguments: str) -> Host:
        process = await asyncio.create_subprocess_exec(
            str(AGENT),
            "host",
            *arguments,
            "--",
            "chrome-extension://abc/",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        return Host(process)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while True:
            try:
                (length,) = struct.unpack("=I", await self.process.stdout.readexactly(4))
                self.messages.append(json.loads(await self.process.stdout.readexactly(length)))
            except asyncio.IncompleteReadError:
                return

    def send(self, *messages: Message) -> None:
        self.send_bytes(b"".join(map(frame, messages)))

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def of(self, kind: str) -> list[Message]:
        return [message for message in self.messages if message["type"] == kind]

    async def close(self, timeout_s: float = 10.0) -> int:
        """Closes the pipe, as a browser that ends; returns the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self.ended(timeout_s)

    async def ended(self, timeout_s: float = 10.0) -> int:
        code = await asyncio.wait_for(self.process.wait(), timeout_s)
        await self._reading
        return code

    async def die(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._reading


class Source:
    """A TCP server that sends as much as its test says."""

    def __init__(self) -> None:
        self.port = 0
        self.writers: list[asyncio.StreamWriter] = []
        self.connections: list[Connection] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.writers.append(writer)

        self._server = await asyncio.start_server(take, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def connect(self) -> Connection:
        """A connection of this process, the browser, to the server."""
        count = len(self.writers)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)
        await until(lambda: len(self.writers) > count)
        self.connections.append(Connection(reader, writer, self.writers[-1]))
        return self.connections[-1]

    async def stop(self) -> None:
        assert self._server is not None
        for connection in self.connections:
            await connection.close()
        self._server.close()
        await self._server.wait_closed()


class Connection:
    """Both ends of one connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: asyncio.StreamWriter
    ) -> None:
        self._reader, self._writer, self._server = reader, writer, server
        self.port: int = writer.get_extra_info("sockname")[1]

    async def receive(self, count: int) -> None:
        """The server sends so many bytes, and they arrive."""
        self._server.write(bytes(count))
        await self._reader.readexactly(count)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()
        self._server.close()


async def until(what: Callable[[], Any], timeout_s: float = 10.0) -> Any:
    """Waits until `what` is true, and returns it."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s
    while not (result := what()):
        assert loop.time() < end, f"not within {timeout_s} s"
        await asyncio.sleep(0.02)
    return result
