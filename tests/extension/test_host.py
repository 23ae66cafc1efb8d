"""`steerline-agent host`: reports with the right connections, and what breaks a pipe."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest

from steerline.flow.v1 import flow_pb2
from steerline.report.v1 import report_pb2
from tests.agent.station import Station, acknowledge

from .conftest import Start
from .cost.processes import cpu_s, memory_mb
from .host import AGENT, SCHEMA, Source, frame, report, until


def ports(one: report_pb2.PlaybackReport) -> set[tuple[int, int]]:
    return {(flow.protocol, flow.client_port) for flow in one.flows}


async def test_of_several_connections_those_that_carry_bytes_are_reported(
    start: Start, station: Station, source: Source
) -> None:
    """Of three connections to one server the report names the one that carries the film."""
    busy, *idle = [await source.connect() for _ in range(3)]
    host = await start(*station.arguments)
    for number in range(1, 4):
        await busy.receive(300_000)
        for quiet in idle:
            await quiet.receive(400)
        host.send(report("a", number, [("127.0.0.1", source.port)]))
        await until(lambda number=number: len(station.of("a")) == number)
    last = station.of("a")[-1]
    assert ports(last) == {(6, busy.port)}
    assert (last.flows[0].server_address, last.flows[0].server_port) == ("127.0.0.1", source.port)
    assert (last.buffer_length_ms, last.encoded_bitrate_kbps, last.player_name) == (
        12_000,
        2600,
        "html5-video",
    )


async def test_a_new_connection_is_in_the_next_report(start: Start, station: Station, source: Source) -> None:
    """A connection that replaces another is reported a second later, and said to be a change of flows."""
    first = await source.connect()
    host = await start(*station.arguments)
    await first.receive(900_000)
    host.send(report("a", 1, [("127.0.0.1", source.port)]))
    await until(lambda: station.of("a"))
    await first.close()
    second = await source.connect()
    await second.receive(300_000)
    await asyncio.sleep(1)
    host.send(report("a", 2, [("127.0.0.1", source.port)]))
    changed = (await until(lambda: station.of("a")[1:]))[0]
    assert ports(changed) == {(6, second.port)}
    assert changed.cause == report_pb2.REPORT_CAUSE_FLOWS_CHANGED


async def test_quic_is_the_connected_udp_socket(start: Start, station: Station) -> None:
    """A connected UDP socket of the browser to the server is reported with its own port."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours,
    ):
        server.bind(("127.0.0.1", 0))
        ours.connect(server.getsockname())
        host = await start(*station.arguments)
        host.send(report("a", 1, [("127.0.0.1", 443)]))
        first = (await until(lambda: station.of("a")))[0]
        assert ports(first) == {(17, ours.getsockname()[1])}
        assert first.flows[0].server_port == server.getsockname()[1]


async def test_a_browser_that_ends_ends_its_sessions(start: Start, station: Station) -> None:
    """When the pipe closes, each live session quits at the station, and the host ends well."""
    host = await start(*station.arguments)
    host.send(report("a", 5, []), report("b", 9, []), report("c", 1, [], player_state="QUIT"))
    await until(lambda: len(station.reports) == 3)
    assert await host.close() == 0
    last = {one.session_id: one for one in station.reports[3:]}
    assert {name: (one.player_state, one.sequence_number) for name, one in last.items()} == {
        "a": (flow_pb2.PLAYER_STATE_QUIT, 6),
        "b": (flow_pb2.PLAYER_STATE_QUIT, 10),
    }


async def test_what_the_station_says_reaches_the_extension(start: Start, station: Station) -> None:
    """Assessment, advice, decision and rejection are passed on; every message is of the schema."""

    def answer(one: report_pb2.PlaybackReport) -> list[report_pb2.ReportResponse]:
        responses = [*acknowledge(one), *(report_pb2.ReportResponse() for _ in range(4))]
        responses[1].assessment.session_id = one.session_id
        responses[1].assessment.critical = True
        responses[2].advice.session_id = one.session_id
        responses[2].advice.sustainable_bps = 2_600_000
        responses[3].decision.session_id = one.session_id
        responses[3].decision.kind = flow_pb2.DECISION_KIND_STEER
        responses[3].decision.to_line = "line2"
        responses[4].rejection.session_id = one.session_id
        responses[4].rejection.sequence_number = 99
        responses[4].rejection.message = "no"
        return responses

    station.answer = answer
    host = await start(*station.arguments)
    mine = report("a", 1, [])
    host.send({"type": "hello", "protocol": 1, "version": "0.1.0", "browser": "chromium"}, mine)
    await until(lambda: host.of("rejection"))
    assert host.of("hello")[0]["station"].startswith(station.url)
    assert host.of("station")[-1]["state"] == "connected"
    assert host.of("assessment") == [{"type": "assessment", "session_id": "a", "critical": True}]
    assert host.of("advice")[0]["sustainable_kbps"] == 2600
    assert host.of("decision")[0]["kind"] == "STEER"
    assert host.of("ack") == [{"type": "ack", "session_id": "a", "sequence_number": 1}]
    for message in [mine, *host.messages]:
        jsonschema.validate(message, SCHEMA)


async def test_a_station_that_was_away_gets_what_it_missed(start: Start, station: Station) -> None:
    """The extension hears that the station is away and back; what it missed arrives as REPLAYED."""
    host = await start(*station.arguments)
    host.send(report("a", 1, []))
    await until(lambda: host.of("station"))
    await station.die()
    await until(lambda: host.of("station")[-1]["state"] == "away")
    host.send(report("a", 2, []), report("a", 3, []))
    await asyncio.sleep(1.5)
    await station.start()
    await until(lambda: len(station.of("a")) == 3, 20)
    assert [one.cause for one in station.of("a")[1:]] == [report_pb2.REPORT_CAUSE_REPLAYED] * 2
    await until(lambda: host.of("station")[-1]["state"] == "connected")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (struct.pack("=I", 0xFFFFFFFF) + b"{}", "4294967295 bytes was announced; allowed are 1 to 1048576"),
        (struct.pack("=I", 1048577), "1048577 bytes was announced"),
        (struct.pack("=I", 0), "0 bytes was announced"),
    ],
)
async def test_a_message_too_long_ends_the_host_with_a_reason(start: Start, data: bytes, said: str) -> None:
    """A length that no browser sends ends the host: it says why on the pipe, and does not crash."""
    host = await start()
    host.send_bytes(data)
    assert await host.ended() == 1
    assert said in host.of("error")[-1]["message"]


@pytest.mark.parametrize("data", [b"\x05", struct.pack("=I", 100) + b'{"type":'])
async def test_a_truncated_message_ends_the_host_with_a_reason(start: Start, data: bytes) -> None:
    """A pipe that closes within a message is named as that."""
    host = await start()
    host.send_bytes(data)
    assert await host.close() == 1
    assert "ended within a message" in host.of("error")[-1]["message"]


async def test_nonsense_within_a_message_disturbs_nothing(start: Start, station: Station) -> None:
    """What is no message, or no report, is answered with an error; the next report is taken."""
    host = await start(*station.arguments)
    for data in (b"nonsense", b"[]", b'{"type":"report"}', b"\xff\xfe", b"null"):
        host.send_bytes(struct.pack("=I", len(data)) + data)
    host.send({"type": "later"}, report("a", 1, [], player_state="DANCING"), report("a", 2, []))
    await until(lambda: station.of("a"))
    assert len(host.of("error")) == 5
    assert host.of("rejection")[0]["field"] == "player_state"
    assert station.of("a")[0].sequence_number == 2


async def test_sessions_are_bounded(start: Start, station: Station) -> None:
    """The 65th session at a time is refused, the others go on."""
    host = await start(*station.arguments)
    host.send(*(report(f"s{n}", 1, []) for n in range(65)))
    refused = (await until(lambda: host.of("rejection")))[0]
    assert refused["session_id"] == "s64" and "64 sessions" in refused["message"]
    await until(lambda: len(station.reports) == 64)


async def test_without_a_station_it_says_so(start: Start) -> None:
    """A host that was installed without a station says so, and takes reports."""
    host = await start()
    host.send(report("a", 1, []))
    await until(lambda: host.of("ack"))
    assert host.of("hello")[0]["station"] == ""
    assert host.of("station")[0]["state"] == "none"
    assert await host.close() == 0


async def test_a_wrong_setting_is_told_to_the_extension(start: Start, tmp_path: Path) -> None:
    """A certificate file that is missing ends the host with a message that names it."""
    host = await start("--station", "https://127.0.0.1:1", "--ca", str(tmp_path / "none.pem"))
    assert await host.ended() == 1
    assert "none.pem" in host.of("error")[0]["message"]


async def test_a_change_between_reports_is_asked_for_at_once(
    start: Start, station: Station, source: Source
) -> None:
    """Connections that change after a report: within a moment the host asks for the next one, once."""
    first = await source.connect()
    await first.receive(300_000)
    host = await start(*station.arguments)
    host.send(report("a", 1, [("127.0.0.1", source.port)]), report("b", 1, [], player_state="PAUSED"))
    await until(lambda: len(station.reports) == 2)
    await asyncio.sleep(0.6)
    assert host.of("again") == []
    second = await source.connect()
    await second.receive(300_000)
    await until(lambda: host.of("again"), 1.5)
    await asyncio.sleep(0.6)
    assert host.of("again") == [{"type": "again", "session_id": "a"}]
    jsonschema.validate(host.of("again")[0], SCHEMA)
    host.send(report("a", 2, [("127.0.0.1", source.port)]))
    told = (await until(lambda: station.of("a")[1:]))[0]
    assert ports(told) == {(6, first.port), (6, second.port)}
    assert told.cause == report_pb2.REPORT_CAUSE_FLOWS_CHANGED


async def test_reports_that_waited_in_the_pipe_are_history(start: Start, station: Station) -> None:
    """After a sleep what had waited is sent as REPLAYED, and what is new as it is."""
    host = await start(*station.arguments)
    now_ms = int(datetime.now(tz=UTC).timestamp() * 1000)
    ages_s = (3600, 20, 5, 0)
    host.send(*(report("a", n, [], timestamp_ms=now_ms - age * 1000) for n, age in enumerate(ages_s, 1)))
    await until(lambda: len(station.reports) == 4)
    replayed, periodic = report_pb2.REPORT_CAUSE_REPLAYED, report_pb2.REPORT_CAUSE_PERIODIC
    assert [one.cause for one in station.reports] == [replayed, replayed, replayed, periodic]


async def test_a_station_that_never_answers_costs_little(start: Start, source: Source) -> None:
    """Ten minutes of reports of two sessions for nobody: memory stays bounded, the extension hears why."""
    host = await start("--station", "http://127.0.0.1:9")
    for number in range(1, 601):
        for name in "ab":
            host.send(report(name, number, [("127.0.0.1", source.port)]))
        if number % 20 == 0:
            await until(lambda number=number: len(host.of("ack")) == 2 * number)
    away = await until(lambda: host.of("station"))
    assert away[-1]["state"] == "away" and "refused" in away[-1]["message"].lower()
    await asyncio.sleep(2)
    before = cpu_s(host.process.pid)
    await asyncio.sleep(2)
    assert cpu_s(host.process.pid) - before < 0.06
    assert memory_mb(host.process.pid)["rss"] < 10
    assert await host.close() == 0


async def test_ipv6_connections_are_reported(start: Start, station: Station) -> None:
    """A connection over IPv6 is told from others by its bytes, as any."""
    with socket.socket(socket.AF_INET6) as server, socket.socket(socket.AF_INET6) as ours:
        server.bind(("::1", 0))
        server.listen()
        ours.connect(server.getsockname())
        theirs, _ = server.accept()
        with theirs:
            theirs.sendall(bytes(50_000))
            host = await start(*station.arguments)
            host.send(report("a", 1, [("::1", server.getsockname()[1])]))
            told = (await until(lambda: station.of("a")))[0]
            assert [(flow.server_address, flow.client_port) for flow in told.flows] == [
                ("::1", ours.getsockname()[1])
            ]


async def test_quic_of_firefox_is_its_port_and_the_announced_one(start: Start, station: Station) -> None:
    """A UDP socket that is connected to nobody: its own port, the server's address, the port of Alt-Svc."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.bind(("127.0.0.1", 0))
        host = await start(*station.arguments)
        told = report("a", 1, [])
        told["report"]["servers"] = [
            {"address": "127.0.0.1", "port": 443, "busy": True, "http3": True, "http3_port": 8443}
        ]
        jsonschema.validate(told, SCHEMA)
        host.send(told)
        first = (await until(lambda: station.of("a")))[0]
        assert [(flow.client_port, flow.server_port) for flow in first.flows] == [
            (ours.getsockname()[1], 8443)
        ]


async def test_it_is_small(start: Start, station: Station, source: Source) -> None:
    """With one video the host is less than 10 MB in memory, the program's own text included."""
    connection = await source.connect()
    host = await start(*station.arguments)
    for number in range(1, 21):
        await connection.receive(100_000)
        host.send(report("a", number, [("127.0.0.1", source.port)]))
    await until(lambda: len(station.of("a")) == 20)
    assert memory_mb(host.process.pid)["rss"] < 10


async def test_the_record_holds_what_was_reported(
    start: Start, station: Station, source: Source, tmp_path: Path
) -> None:
    """Each report is a line with its time, buffer and connections; a second host goes on with the file."""
    connection = await source.connect()
    await connection.receive(100_000)
    path = tmp_path / "host.jsonl"
    for number in (1, 2):
        host = await start(*station.arguments, "--record", str(path))
        host.send(report("a", number, [("127.0.0.1", source.port)]))
        await until(lambda number=number: len(station.of("a")) >= number)
        await host.die()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    reports = [line for line in lines if line["kind"] == "report"]
    assert [line["sequence_number"] for line in reports] == [1, 2]
    assert all(abs(line["time_s"] - path.stat().st_mtime) < 60 for line in lines)
    assert (reports[0]["session_id"], reports[0]["buffer_s"], reports[0]["player_state"]) == (
        "a",
        12,
        "PLAYING",
    )
    assert [(flow["client_port"], flow["server_port"]) for flow in reports[1]["flows"]] == [
        (connection.port, source.port)
    ]
    assert reports[1]["servers"] == [{"address": "127.0.0.1", "port": source.port}]


async def test_frames_that_come_in_pieces_are_whole(start: Start, station: Station) -> None:
    """A message that arrives byte by byte is one message."""
    host = await start(*station.arguments)
    for byte in frame(report("a", 1, [])):
        host.send_bytes(bytes([byte]))
        await asyncio.sleep(0)
    await until(lambda: station.of("a"))


# Run by a user who may nothing special: a browser with one connection, and its host.
NOBODY = """
import json, socket, struct, subprocess, sys
ours = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
host = subprocess.Popen([sys.argv[2], "host"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
host.stdin.write(bytes.fromhex(sys.argv[3]))
host.stdin.flush()
while True:
    (length,) = struct.unpack("=I", host.stdout.read(4))
    message = json.loads(host.stdout.read(length))
    if message["type"] == "flows":
        assert [flow["client_port"] for flow in message["flows"]] == [ours.getsockname()[1]], message
        break
host.stdin.close()
sys.exit(host.wait())
"""


async def test_it_needs_no_privileges(source: Source) -> None:
    """A user without any privilege gets the right connection."""
    data = frame(report("a", 1, [("127.0.0.1", source.port)])).hex()
    words = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
        "--no-new-privs",
    ]
    words += ["/usr/bin/python3", "-c", NOBODY, str(source.port), str(AGENT), data]
    process = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.PIPE)
    _, err = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 0, err.decode()
    for writer in source.writers:
        writer.close()
