"""What strangers send to the web listener: each is answered or cut off, and disturbs nobody."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from steerline_appstation.web import body, connections

from .support import Controller, RunningStation, eventually
from .web_client import EXTENSION, ask, connected, head, post, read_answer, served

JSON = {"Content_Type": "application/json", "Origin": EXTENSION}
WEB = {"reports": "127.0.0.1:0", "rest": "127.0.0.1:0", "web": "127.0.0.1:0"}
StartStation = Callable[..., Awaitable[RunningStation]]


@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"\xff\xfe\x00", 400, "not JSON"),
        (b'{"reports": [NaN]}', 400, "not JSON"),
        (b"[" * 100_000, 400, "not JSON"),
        (b"[]", 422, "without reports"),
        (b"3", 422, "without reports"),
        (b'{"reports": {}}', 422, "without reports"),
        (b'{"reports": []}', 422, "0 reports"),
        (json.dumps({"reports": [served()] * 65}).encode(), 422, "65 reports"),
        (json.dumps({"reports": [0] * 100_000}).encode(), 422, "100000 reports"),
        (b'{"reports": [' + b'"' + b"x" * 600_000 + b'"]}', 413, "at most 524288"),
        (b" " * 3_000_000, 413, "at most 524288"),
    ],
    ids=lambda value: value[:12].decode(errors="replace") if isinstance(value, bytes) else None,
)
async def test_a_body_that_is_no_list_of_reports(
    station: RunningStation, controller: Controller, data: bytes, status: int, words: str
) -> None:
    """The status and the detail say what was wrong; nothing goes up; the next request is served."""
    answer = await ask(station, "POST", "/reports", data, **JSON)
    assert answer.status == status, answer.body
    assert words in answer.json["detail"]
    assert len(answer.body) < 1000
    assert (await post(station, served())).status == 200
    assert (await controller.next()).session_id == "s1"
    assert controller.assessments.empty()


TEN_THOUSAND = [{"address": f"198.19.{n // 250}.{n % 250}", "port": 443} for n in range(10_000)]


@pytest.mark.parametrize(
    ("report", "field", "words"),
    [
        (7, "report", "an object"),
        (served(servers=TEN_THOUSAND), "servers", "servers is "),
        (served(flows=[]), "flows", "flows is not a field of a report; allowed: session_id, "),
        (served(client_address="198.18.1.12"), "client_address", "is not a field of a report"),
        (served(servers=[{"address": "video.example", "port": 1}]), "servers.address", "IPv4 or IPv6"),
        (served(servers=[{"address": "fe80::1%eth0", "port": 1}]), "servers.address", "without a zone"),
        (served(servers=[{"address": "198.19.0.1"}]), "servers.0.port", "missing"),
        (served(servers=None), "servers", "missing"),
        (served(player_name="a\nb"), "player_name", "printable"),
        (served(sequence_number=10**400), "sequence_number", "1 to 9.007199255e+15"),
        (served(buffer_length_ms="1"), "buffer_length_ms", "0 to 86400000"),
        (served(starved=1), "starved", ""),
        (served(player_state="DANCING"), "player_state", "STARTING, PLAYING"),
        (served("a b"), "session_id", ""),
        (served("a\n"), "session_id", ""),
        (served("x" * 100_000), "session_id", ""),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value)[:20],
)
async def test_a_wrong_report_is_rejected(
    station: RunningStation, controller: Controller, report: Any, field: str, words: str
) -> None:
    """The rejection names field and allowed values, and is short."""
    (message, *rest) = (await post(station, report, served("good"))).messages
    assert (message["type"], message["field"]) == ("rejection", field)
    assert words in message["message"]
    assert len(message["message"]) <= 500
    assert len(message["session_id"]) <= 64
    assert [m["session_id"] for m in rest] == ["good"]
    assert (await controller.next()).session_id == "good"
    assert controller.assessments.empty()


async def test_a_flood_is_told_to_wait(controller: Controller, start_station: StartStation) -> None:
    """Reports count one by one, and by size; a second later this address is heard again."""
    station = await start_station(
        steering_port=controller.port, tls=True, listen=WEB, max_reports_per_s_per_address=20
    )
    data = json.dumps({"reports": [served("a"), served("b")]}).encode() + b" " * 400_000
    messages = (await ask(station, "POST", "/reports", data, **JSON)).messages
    assert [(m["type"], m["session_id"]) for m in messages] == [("rejection", "b"), ("assessment", "a")]
    answer = await post(station, served())
    assert (answer.status, answer.headers.get("retry-after")) == (429, "1")
    assert "20 reports of 4096 bytes a second" in answer.json["detail"]
    assert (await post(station, served(), local="127.0.0.2")).status == 200

    async def heard() -> bool:
        return (await post(station, served("later"))).status == 200

    await eventually(heard)


async def test_too_many_sessions(controller: Controller, start_station: StartStation) -> None:
    """One session more than an address may have is refused; the others go on."""
    station = await start_station(
        steering_port=controller.port, tls=True, listen=WEB, max_sessions_per_address=2
    )
    messages = (await post(station, served("a"), served("b"), served("c"))).messages
    assert [(m["type"], m["session_id"]) for m in messages] == [
        ("rejection", "c"),
        ("assessment", "a"),
        ("assessment", "b"),
    ]


async def test_who_dawdles_is_cut_off(station: RunningStation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence, a header or a body byte by byte, no handshake: each ends by itself, others are served."""
    monkeypatch.setattr(connections, "REQUEST_WITHIN_S", 1.0)
    monkeypatch.setattr(connections, "HANDSHAKE_WITHIN_S", 1.0)
    monkeypatch.setattr(body, "BODY_WITHIN_S", 0.4)

    async def drip(first: bytes) -> bytes:
        async with connected(station) as (reader, writer), asyncio.timeout(5):
            writer.write(first)

            async def more() -> None:
                while True:
                    await asyncio.sleep(0.05)
                    writer.write(b"a")

            dripping = asyncio.create_task(more())
            try:
                return await reader.read()
            except ConnectionError:
                return b""
            finally:
                dripping.cancel()

    async def no_handshake() -> bytes:
        host, _, port = station.ready.web.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        async with asyncio.timeout(5):
            try:
                return await reader.read()
            except ConnectionError:
                return b""
            finally:
                writer.close()

    async def silence() -> bytes:
        async with connected(station) as (reader, _), asyncio.timeout(5):
            try:
                return await reader.read()
            except ConnectionError:
                return b""

    slow_header = drip(b"POST /reports HTTP/1.1\r\nX-")
    slow_body = drip(head("POST", "/reports", 100_000, **JSON) + b'{"reports": [')
    answers = await asyncio.gather(slow_header, slow_body, silence(), no_handshake(), post(station, served()))
    assert answers[0] == answers[2] == answers[3] == b""
    assert answers[1].startswith(b"HTTP/1.1 408 ")
    assert b"allowed: 0.4 s for all of it" in answers[1]
    assert answers[4].status == 200


async def test_a_household_that_opens_everything_keeps_out_only_itself(station: RunningStation) -> None:
    """Beyond its share of connections an address gets none; another one is served at once."""
    host, _, port = station.ready.web.rpartition(":")
    hoard = [
        await asyncio.open_connection(host, int(port), local_addr=("127.0.0.3", 0))
        for _ in range(connections.MAX_CONNECTIONS_PER_ADDRESS + 8)
    ]
    closed = 0
    for reader, _ in hoard[connections.MAX_CONNECTIONS_PER_ADDRESS :]:
        async with asyncio.timeout(5):
            try:
                closed += await reader.read() == b""
            except ConnectionError:
                closed += 1
    assert closed == 8
    assert (await post(station, served())).status == 200
    for _, writer in hoard:
        writer.transport.abort()

    async def again() -> bool:
        try:
            return (await post(station, served("s2"), local="127.0.0.3")).status == 200
        except OSError:
            return False

    await eventually(again)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"\x16\x03\x01nonsense\r\n\r\n",
        b"POST /reports HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /reports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["headers", "nonsense", "length", "chunk"],
)
async def test_bytes_that_are_no_request(station: RunningStation, sent: bytes) -> None:
    """Refused with 4xx or cut off; the station goes on."""
    async with connected(station) as (reader, writer), asyncio.timeout(10):
        writer.write(sent)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            assert (await read_answer(reader)).status in range(400, 500)
    assert (await post(station, served())).status == 200


async def test_a_client_that_leaves_in_the_middle(station: RunningStation) -> None:
    """Half a body and gone: nothing is counted, nothing breaks."""
    for _ in range(5):
        async with connected(station) as (_, writer):
            writer.write(head("POST", "/reports", 1000, **JSON) + b'{"reports": [')
            await writer.drain()
    assert (await post(station, served())).status == 200
    assert [s["session_id"] for s in (await station.get("/sessions"))[1]] == ["s1"]
