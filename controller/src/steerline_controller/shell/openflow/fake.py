# pyright: basic
"""A switch without a switch: takes the same bytes, says where packets would leave. For tests and planning.

The contract test holds it against Open vSwitch (`ofproto/trace`). It knows what the pipeline uses of
OpenFlow 1.3: exact and MAC-masked matches, output, groups, goto, cookies, counters of zero.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser
from os_ken.ofproto.ofproto_parser import header
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from steerline_controller.shell.openflow import wire
from steerline_controller.shell.openflow.rules import CONTROLLER

_PROTOCOL = ProtocolDesc(version=ofp.OFP_VERSION)

# A packet, in OXM's names and os-ken's values: {"eth_type": 0x800, "ipv4_dst": "192.0.2.1", ...}.
Packet = Mapping[str, int | str]
# The ports that one packet leaves by, the controller among them.
Outcome = frozenset[int]


@dataclass
class _Entry:
    table: int
    priority: int
    match: dict[str, Any]
    raw: bytes  # match and instructions, as they came
    cookie: int
    instructions: list[Any]


@dataclass
class _Group:
    kind: int
    buckets: list[tuple[int, int]] = field(default_factory=list)  # watched port, output port


def _number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


def _field_matches(wanted: Any, have: int | str | None) -> bool:
    if isinstance(wanted, tuple):
        value, mask = map(_number, wanted)
        return isinstance(have, str) and _number(have) & mask == value & mask
    return wanted == have


class FakeSwitch:
    """One switch. `answer` is called with each message that a real one would send back."""

    def __init__(
        self, ports_up: Mapping[int, bool], answer: Callable[[bytes], object] = lambda _message: None
    ) -> None:
        self.ports_up = dict(ports_up)
        self.packets_out: list[tuple[int, bytes]] = []
        self.closed = False
        self.peer = "fake"
        self._answer = answer
        self._entries: list[_Entry] = []
        self._groups: dict[int, _Group] = {}

    # ------------------------------------------------------------ messages in

    def send(self, data: bytes, /) -> None:
        """Takes whole messages, as a `Channel` does."""
        for message in messages(data):
            self._take(message)

    def close(self) -> None:
        """Ends the connection."""
        self.closed = True

    def _take(self, message: bytes) -> None:
        _version, kind, length, xid = header(message)
        if kind == wire.FLOW_MOD:
            self._flow_mod(
                parser.OFPFlowMod.parser(_PROTOCOL, 4, kind, length, xid, bytearray(message)), message
            )
        elif kind == ofp.OFPT_GROUP_MOD:
            self._group_mod(message)
        elif kind == wire.PACKET_OUT:
            port = int.from_bytes(message[28:32], "big")
            self.packets_out.append((port, message[40:]))
        elif kind == wire.BARRIER_REQUEST:
            self._answer(struct.pack("!BBHI", 4, wire.BARRIER_REPLY, 8, xid))
        elif kind == wire.MULTIPART_REQUEST:
            self._multipart(message, xid)

    def _flow_mod(self, message: Any, raw: bytes) -> None:
        match = dict(message.match.items())
        if message.command == ofp.OFPFC_ADD:
            same = self._same(message.table_id, message.priority, match)
            entry = _Entry(
                message.table_id, message.priority, match, raw[48:], message.cookie, message.instructions
            )
            self._entries = [e for e in self._entries if e is not same] + [entry]
        elif message.command == ofp.OFPFC_DELETE_STRICT:
            same = self._same(message.table_id, message.priority, match)
            self._entries = [e for e in self._entries if e is not same]
        elif message.command == ofp.OFPFC_DELETE:
            mask = message.cookie_mask
            self._entries = [
                e
                for e in self._entries
                if message.table_id not in (e.table, ofp.OFPTT_ALL)
                or (e.cookie & mask) != (message.cookie & mask)
            ]

    def _same(self, table: int, priority: int, match: dict[str, Any]) -> _Entry | None:
        for entry in self._entries:
            if (entry.table, entry.priority, entry.match) == (table, priority, match):
                return entry
        return None

    def _group_mod(self, message: bytes) -> None:
        command, kind, group_id = struct.unpack_from("!HBxI", message, 8)
        group = _Group(kind)
        at = 16
        while at < len(message):
            bucket: Any = parser.OFPBucket.parser(message, at)
            group.buckets.append((bucket.watch_port, bucket.actions[0].port))
            at += bucket.len
        # ADD of a group that exists and MODIFY of one that does not are refused.
        if (command == ofp.OFPGC_ADD) != (group_id in self._groups):
            self._groups[group_id] = group
        else:
            self._answer(struct.pack("!BBHIHH", 4, wire.ERROR, 12, 0, 6, 0 if command == 0 else 8))

    def _multipart(self, message: bytes, xid: int) -> None:
        kind = struct.unpack_from("!H", message, 8)[0]
        body = b""
        if kind == wire.MULTIPART_FLOW:
            table, cookie, mask = struct.unpack_from("!B15xQQ", message, 16)
            for e in self._entries:
                if table in (e.table, wire.ALL_TABLES) and (e.cookie & mask) == (cookie & mask):
                    body += struct.pack(
                        "!HBxIIHHHH4xQQQ", 48 + len(e.raw), e.table, 0, 0, e.priority, 0, 0, 0, e.cookie, 0, 0
                    )
                    body += e.raw
        elif kind == wire.MULTIPART_PORT:
            body = b"".join(struct.pack("!I", port).ljust(112, b"\0") for port in self.ports_up)
        self._answer(struct.pack("!BBHIHH4x", 4, wire.MULTIPART_REPLY, 16 + len(body), xid, kind, 0) + body)

    # ------------------------------------------------------------ packets

    @property
    def rules(self) -> list[tuple[int, int, dict[str, Any], int]]:
        """Table, priority, match and cookie of each rule."""
        return [(e.table, e.priority, e.match, e.cookie) for e in self._entries]

    def outcomes(self, in_port: int, packet: Packet) -> set[Outcome]:
        """Every way this packet can leave: more than one where a select group chooses."""
        whole = {**packet, "in_port": in_port}
        choices = max((len(group.buckets) for group in self._groups.values()), default=0) or 1
        return {frozenset(self._walk(in_port, whole, choice)) for choice in range(choices)}

    def _walk(self, in_port: int, packet: Packet, choice: int) -> Iterator[int]:
        table: int | None = 0
        while table is not None:
            entry = self._best(table, packet)
            table = None
            for instruction in entry.instructions if entry is not None else ():
                if instruction.type == ofp.OFPIT_GOTO_TABLE:
                    table = instruction.table_id
                else:
                    for action in instruction.actions:
                        for port in self._ports_of(action, choice):
                            # OpenFlow: never back out of the port it came by, unless told IN_PORT.
                            if port != in_port and (port == CONTROLLER or port in self.ports_up):
                                yield port

    def _best(self, table: int, packet: Packet) -> _Entry | None:
        hits = [
            e
            for e in self._entries
            if e.table == table and all(_field_matches(v, packet.get(k)) for k, v in e.match.items())
        ]
        return max(hits, key=lambda e: e.priority, default=None)

    def _ports_of(self, action: Any, choice: int) -> list[int]:
        if action.type == ofp.OFPAT_OUTPUT:
            return [action.port]
        group = self._groups.get(action.group_id)
        if group is None:
            return []
        live = [port for watch, port in group.buckets if watch == ofp.OFPP_ANY or self.ports_up.get(watch)]
        if group.kind == ofp.OFPGT_ALL:
            return live
        if not live:
            return []
        return [live[0] if group.kind == ofp.OFPGT_FF else live[choice % len(live)]]


def messages(data: bytes) -> Iterator[bytes]:
    """The whole messages in a stream of bytes."""
    at = 0
    while at < len(data):
        length = struct.unpack_from("!H", data, at + 2)[0]
        yield data[at : at + length]
        at += length
