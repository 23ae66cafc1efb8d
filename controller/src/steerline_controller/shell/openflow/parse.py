"""The fast way from bytes: PACKET_IN, counters, expired rules. Raises MalformedMessageError on nonsense.

tests/wire holds each against os-ken's own parser.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Final, NamedTuple, ParamSpec, TypeVar

from steerline_contract.flows import FiveTuple, IPAddress
from steerline_controller.core.events import Side

_P = ParamSpec("_P")
_R = TypeVar("_R")


class MalformedMessageError(ValueError):
    """A switch sent bytes that are no OpenFlow 1.3 message."""


def _guarded(function: Callable[_P, _R]) -> Callable[_P, _R]:
    @wraps(function)
    def guard(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except MalformedMessageError:
            raise
        except (struct.error, IndexError, ValueError) as error:
            raise MalformedMessageError(f"{function.__name__}: {error}") from error

    return guard


class PacketIn(NamedTuple):
    """A packet that a switch hands to the controller."""

    in_port: int
    table: int
    total_length: int
    data: bytes


class FlowEntry(NamedTuple):
    """One rule, as a switch shows it."""

    table: int
    cookie: int
    byte_count: int
    match: bytes
    instructions: bytes


@dataclass(frozen=True, slots=True)
class RemovedRule:
    """A rule that the switch removed. `reason`: OFPRR_* (0 idle, 1 hard, 2 deleted)."""

    cookie: int
    reason: int
    match: bytes


_PACKET_IN: Final = struct.Struct("!IHBBQHH")
_FLOW_STATS: Final = struct.Struct("!HB17x4xQ8xQHH")
_OXM: Final = struct.Struct("!HBB")
_IN_PORT_ONLY: Final = 0x80000004


def match_fields(match: bytes) -> dict[int, bytes]:
    """OXM fields of a match, by field number: the value alone, a mask is not looked at."""
    if len(match) < 4:
        raise MalformedMessageError("a match shorter than its header")
    kind, length = struct.unpack_from("!HH", match)
    if kind != 1 or not 4 <= length <= len(match):
        raise MalformedMessageError(f"a match of type {kind} and length {length} in {len(match)} bytes")
    fields: dict[int, bytes] = {}
    at = 4
    while at + 4 <= length:
        oxm_class, field, size = _OXM.unpack_from(match, at)
        at += 4
        if at + size > length:
            raise MalformedMessageError(f"match field {field >> 1} runs over its match")
        if oxm_class == 0x8000:
            value = match[at : at + size]
            fields[field >> 1] = value[: size // 2] if field & 1 else value
        at += size
    return fields


@_guarded
def packet_in(message: bytes) -> PacketIn:
    """PACKET_IN."""
    _buffer, total, _reason, table, _cookie, _kind, length = _PACKET_IN.unpack_from(message, 8)
    if length < 4 or 24 + length > len(message):
        raise MalformedMessageError(f"PACKET_IN with a match of {length} bytes in {len(message)}")
    # OVS puts in_port first, and mostly alone.
    if length >= 12 and struct.unpack_from("!I", message, 28)[0] == _IN_PORT_ONLY:
        in_port: int = struct.unpack_from("!I", message, 32)[0]
    else:
        fields = match_fields(message[24 : 24 + length])
        if 0 not in fields:
            raise MalformedMessageError("PACKET_IN without its in_port")
        in_port = int.from_bytes(fields[0], "big")
    start = 24 + length + (-length % 8) + 2
    return PacketIn(in_port, table, total, message[start:])


@_guarded
def multipart(message: bytes) -> tuple[int, bool]:
    """Type of a MULTIPART_REPLY, and whether more of it follows."""
    kind, flags = struct.unpack_from("!HH", message, 8)
    return kind, bool(flags & 1)


def flow_entries(message: bytes) -> Iterator[FlowEntry]:
    """The rules in one MULTIPART_REPLY of type FLOW."""
    at, end = 16, len(message)
    unpack = _FLOW_STATS.unpack_from
    while at < end:
        if at + 56 > end:
            raise MalformedMessageError("flow counters cut short")
        length, table, cookie, byte_count, _kind, match_length = unpack(message, at)
        match_end = at + 48 + match_length + (-match_length % 8)
        if length < 56 or at + length > end or match_end > at + length:
            raise MalformedMessageError(f"flow counters of length {length} at {at} of {end}")
        following = at + length
        yield FlowEntry(table, cookie, byte_count, message[at + 48 : match_end], message[match_end:following])
        at = following


@_guarded
def port_counters(message: bytes) -> dict[int, tuple[int, int]]:
    """Port number -> (received bytes, sent bytes) in one MULTIPART_REPLY of type PORT."""
    counters: dict[int, tuple[int, int]] = {}
    for at in range(16, len(message), 112):
        port, received, sent = struct.unpack_from("!I4x16xQQ", message, at)
        counters[port] = (received, sent)
    return counters


@_guarded
def removed_rule(message: bytes) -> RemovedRule:
    """FLOW_REMOVED."""
    cookie, _priority, reason = struct.unpack_from("!QHB", message, 8)
    return RemovedRule(cookie, reason, message[48:])


@_guarded
def error(message: bytes) -> tuple[int, int, bytes]:
    """ERROR: type, code and the beginning of the message that was refused."""
    kind, code = struct.unpack_from("!HH", message, 8)
    return kind, code, message[12:]


@_guarded
def output_port(instructions: bytes) -> int | None:
    """The port of the first output action under APPLY_ACTIONS, or None."""
    at = 0
    while at + 8 <= len(instructions):
        kind, length = struct.unpack_from("!HH", instructions, at)
        if length < 8:
            raise MalformedMessageError(f"an instruction of {length} bytes")
        if kind == 4:
            action = at + 8
            while action + 8 <= at + length:
                action_kind, action_length = struct.unpack_from("!HH", instructions, action)
                if action_length < 8:
                    raise MalformedMessageError(f"an action of {action_length} bytes")
                if action_kind == 0:
                    return int(struct.unpack_from("!I", instructions, action + 4)[0])
                action += action_length
        at += length
    return None


@_guarded
def flow_of_match(match: bytes, side: Side) -> FiveTuple | None:
    """The flow that a per-flow rule at `side` is about; None when the match is not one of a flow.

    A flow's rules match nothing but addresses, protocol and ports; `match_of` is the inverse.
    """
    fields = match_fields(match)
    protocol = fields.get(10)
    v4 = fields.get(11), fields.get(12)
    source, target = v4 if v4[0] is not None else (fields.get(26), fields.get(27))
    if protocol is None or source is None or target is None:
        return None
    source_port = fields.get(13, fields.get(15, b"\0"))
    target_port = fields.get(14, fields.get(16, b"\0"))
    ends = (
        (_address(source), int.from_bytes(source_port, "big")),
        (_address(target), int.from_bytes(target_port, "big")),
    )
    client, server = ends if side == "A" else ends[::-1]
    return FiveTuple(protocol[0], client[0], client[1], server[0], server[1])


def _address(packed: bytes) -> IPAddress:
    return ipaddress.IPv4Address(packed) if len(packed) == 4 else ipaddress.IPv6Address(packed)


def mac_of_match(match: bytes) -> bytes | None:
    """The destination MAC that a rule is about, or None."""
    return match_fields(match).get(3)
