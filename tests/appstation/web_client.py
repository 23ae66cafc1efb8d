"""An extension without a native host: HTTP over real TLS, and what it says."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

from .support import RunningStation

CONTRACT = json.loads(
    (Path(__file__).parents[2] / "contract/schema/native-messaging.schema.json").read_text(encoding="utf-8")
)
EXTENSION = "chrome-extension://dhhahajopihmhogjpodcniomgmlejjoi"


def contract(name: str) -> Any:
    """A validator of one definition of the messages' schema, addresses included."""
    schema = {"$schema": CONTRACT["$schema"], "$defs": CONTRACT["$defs"], "$ref": f"#/$defs/{name}"}
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    return jsonschema.Draft202012Validator(schema, format_checker=checker)


REQUEST, RESPONSE = contract("webRequest"), contract("webResponse")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The news of a good answer, which is as the contract says."""
        assert self.status == 200, self.body
        RESPONSE.validate(self.json)
        return self.json["messages"]


def served(session_id: str = "s1", sequence_number: int = 1, **changes: Any) -> dict[str, Any]:
    """A good report of an extension, changed by `changes`; None takes a field away."""
    report: dict[str, Any] = {
        "session_id": session_id,
        "sequence_number": sequence_number,
        "timestamp_ms": 1_000_000 + 1000 * sequence_number,
        "cause": "PERIODIC",
        "player_state": "PLAYING",
        "buffer_length_ms": 50_000,
        "encoded_bitrate_kbps": 2728,
        "target_buffer_ms": 55_000,
        "starved": False,
        "playback_rate": 1,
        "remaining_media_ms": 600_000,
        "stall_count": 0,
        "stall_duration_ms": 0,
        "player_name": "html5-video",
        "servers": [{"address": "198.19.0.1", "port": 443}],
    }
    report.update(changes)
    return {name: value for name, value in report.items() if value is not None}


def _tls(station: RunningStation) -> ssl.SSLContext:
    assert station.ca is not None
    return ssl.create_default_context(cadata=station.ca.decode())


@asynccontextmanager
async def connected(
    station: RunningStation, local: str = "127.0.0.1"
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A TLS connection to the web listener from one of loopback's addresses."""
    host, _, port = station.ready.web.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=_tls(station), local_addr=(local, 0))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lines = head.split("\r\n")
    headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Answer(int(lines[0].split()[1]), headers, body)


def head(method: str, path: str, length: int, **headers: str) -> bytes:
    """The bytes before a body. `headers`: with _ for -."""
    lines = [f"{method} {path} HTTP/1.1", "Host: station", f"Content-Length: {length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


async def ask(
    station: RunningStation,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    local: str = "127.0.0.1",
    **headers: str,
) -> Answer:
    """One request on a connection of its own. `headers`: with _ for -."""
    async with connected(station, local) as (reader, writer), asyncio.timeout(10):
        writer.write(head(method, path, len(body), **headers) + body)
        return await read_answer(reader)


async def post(station: RunningStation, *reports: Any, local: str = "127.0.0.1", **headers: str) -> Answer:
    """Posts reports as the extension does."""
    headers = {"Content_Type": "application/json", "Origin": EXTENSION, **headers}
    body = json.dumps({"reports": list(reports)}).encode()
    return await ask(station, "POST", "/reports", body, local=local, **headers)
