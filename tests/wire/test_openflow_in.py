"""The fast way from bytes reads what os-ken's own parser reads, and refuses nonsense in one way."""

from __future__ import annotations

import contextlib
import ipaddress
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_parser
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from steerline_contract.flows import TCP, UDP, FiveTuple
from steerline_controller.shell.openflow import hello, parse, wire

PROTOCOL = ProtocolDesc(version=4)
words = st.integers(0, 2**32 - 1)
longs = st.integers(0, 2**64 - 1)
sides = st.sampled_from(["A", "B"])


@st.composite
def flows(draw: st.DrawFn) -> FiveTuple:
    """Any flow."""
    addresses = st.ip_addresses(v=draw(st.sampled_from([4, 6])))
    protocol = draw(st.sampled_from([1, TCP, UDP, 44, 58]))
    ports = st.integers(0, 65535) if protocol in (TCP, UDP) else st.just(0)
    return FiveTuple(protocol, draw(addresses), draw(ports), draw(addresses), draw(ports))


def message(kind: int, body: bytes, xid: int = 7) -> bytes:
    """A message with its header."""
    return struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body


def os_ken_reads(data: bytes) -> Any:
    """The message as os-ken's parser sees it."""
    version, kind, length, xid = ofproto_parser.header(data)
    return ofproto_parser.msg(PROTOCOL, version, kind, length, xid, data)


def match_bytes(**fields: object) -> bytes:
    """OFPMatch serialised by os-ken."""
    buffer = bytearray()
    parser.OFPMatch(**fields).serialize(buffer, 0)
    return bytes(buffer)


@given(st.integers(1, 0xFFFFFF00), st.integers(0, 254), st.binary(max_size=1500), st.booleans())
def test_packet_in(port: int, table: int, data: bytes, more: bool) -> None:
    """PACKET_IN, with in_port alone and with more in the match."""
    fields: dict[str, object] = {"in_port": port} | ({"metadata": 5, "tunnel_id": 9} if more else {})
    body = struct.pack("!IHBBQ", 0xFFFFFFFF, len(data), 0, table, 5) + match_bytes(**fields) + b"\0\0" + data
    raw = message(10, body)
    theirs, ours = os_ken_reads(raw), parse.packet_in(raw)
    assert (ours.in_port, ours.table, ours.data) == (theirs.match["in_port"], theirs.table_id, theirs.data)
    assert ours.total_length == theirs.total_len


@given(st.lists(st.tuples(flows(), longs, longs, st.integers(1, 1000)), max_size=20), sides, st.booleans())
def test_flow_counters(rules: list[tuple[FiveTuple, int, int, int]], side: Any, more: bool) -> None:
    """MULTIPART_REPLY of type FLOW: cookie, bytes, output and flow of each rule."""
    body = struct.pack("!HH4x", 1, int(more))
    for flow, cookie, count, port in rules:
        placed = wire.place_flow(1, flow, side, port, cookie, 0, False)
        rest = placed[48:]  # match and instructions
        body += struct.pack("!HBxIIHHHH4xQQQ", 48 + len(rest), 1, 0, 0, 100, 0, 0, 0, cookie, 0, count) + rest
    raw = message(19, body)
    assert parse.multipart(raw) == (1, more)
    ours = list(parse.flow_entries(raw))
    theirs = os_ken_reads(raw).body
    assert [(e.cookie, e.byte_count, e.table) for e in ours] == [
        (t.cookie, t.byte_count, t.table_id) for t in theirs
    ]
    assert [parse.output_port(e.instructions) for e in ours] == [
        t.instructions[0].actions[0].port for t in theirs
    ]
    assert [parse.flow_of_match(e.match, side) for e in ours] == [r[0] for r in rules]


@given(st.lists(st.tuples(words, longs, longs), max_size=10, unique_by=lambda p: p[0]))
def test_port_counters(counters: list[tuple[int, int, int]]) -> None:
    """MULTIPART_REPLY of type PORT."""
    body = struct.pack("!HH4x", 4, 0)
    for port, received, sent in counters:
        body += struct.pack("!I4xQQQQ", port, 1, 2, received, sent) + bytes(72)
    raw = message(19, body)
    theirs = {t.port_no: (t.rx_bytes, t.tx_bytes) for t in os_ken_reads(raw).body}
    assert parse.port_counters(raw) == theirs


@given(flows(), sides, longs, st.integers(0, 3))
def test_removed_rule(flow: FiveTuple, side: Any, cookie: int, reason: int) -> None:
    """FLOW_REMOVED."""
    body = struct.pack("!QHBBIIHHQQ", cookie, 100, reason, 1, 3, 4, 30, 0, 5, 6) + wire.match_of(flow, side)
    raw = message(11, body)
    ours, theirs = parse.removed_rule(raw), os_ken_reads(raw)
    assert (ours.cookie, ours.reason) == (theirs.cookie, theirs.reason)
    assert parse.flow_of_match(ours.match, side) == flow


@given(st.sampled_from([10, 11, 19]), st.binary(max_size=200))
def test_nonsense_is_refused_in_one_way(kind: int, body: bytes) -> None:
    """Whatever bytes come, the answer is a value or MalformedMessageError, nothing else."""
    raw = message(kind, body)
    for read in (
        parse.packet_in,
        parse.removed_rule,
        parse.port_counters,
        parse.error,
        lambda m: [parse.output_port(e.instructions) for e in parse.flow_entries(m)],
        lambda m: [parse.flow_of_match(e.match, "A") for e in parse.flow_entries(m)],
        lambda m: parse.flow_of_match(parse.removed_rule(m).match, "B"),
        lambda m: parse.mac_of_match(parse.removed_rule(m).match),
    ):
        with contextlib.suppress(parse.MalformedMessageError):
            read(raw)


@given(st.integers(0, 64), st.integers(0, 200))
def test_flipped_counters(at: int, value: int) -> None:
    """A true answer with one byte changed is read or refused."""
    flow = FiveTuple(TCP, ipaddress.ip_address("1.2.3.4"), 1, ipaddress.ip_address("5.6.7.8"), 2)
    rest = wire.place_flow(1, flow, "A", 3, 4, 0, False)[48:]
    body = struct.pack("!HH4xHBxIIHHHH4xQQQ", 1, 0, 48 + len(rest), 1, 0, 0, 100, 0, 0, 0, 1, 0, 9) + rest
    raw = bytearray(message(19, body))
    raw[16 + at] = value
    with contextlib.suppress(parse.MalformedMessageError):
        for entry in parse.flow_entries(bytes(raw)):
            parse.flow_of_match(entry.match, "A")
            parse.output_port(entry.instructions)


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        ("0400000800000001", ""),
        ("0600000800000001", ""),  # at most 1.5: 1.3 is then agreed
        ("0100000800000001", "offers at most OpenFlow 1.0; allowed: 1.3"),
        ("0400001000000001" + "0001000800000010", ""),
        ("0600001000000001" + "0001000800000060", "offers OpenFlow 1.4, 1.5; allowed: 1.3"),
        ("0100001000000001" + "0001000800000002", "offers OpenFlow 1.0; allowed: 1.3"),
        ("0400000c00000001" + "00010004", "offers OpenFlow (none); allowed: 1.3"),
    ],
)
def test_hello(data: str, refused: str) -> None:
    """A switch that offers OpenFlow 1.3 is taken, any other is told what it offered and what is allowed."""
    said = hello.refusal(bytes.fromhex(data))
    assert refused in said
    assert bool(said) == bool(refused)


def test_errors_have_names() -> None:
    """A switch's refusal is shown in the standard's words."""
    raw = message(1, struct.pack("!HH", 5, 1) + b"rest")
    theirs = os_ken_reads(raw)
    assert parse.error(raw) == (theirs.type, theirs.code, b"rest")
    assert ofp.OFPET_FLOW_MOD_FAILED == 5
