"""What a packet says: whose flow it is, who speaks, and our own probes. Bytes in, words out."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from steerline_contract.flows import TCP, UDP, FiveTuple, IPAddress
from steerline_controller.core.events import Side
from steerline_controller.shell.openflow.pipeline import ETH_ARP, ETH_IPV4, ETH_IPV6, ETH_PROBE

_TAGS: Final = (0x8100, 0x88A8)
_HOP_BY_HOP: Final = 0
_ROUTING: Final = 43
_FRAGMENT: Final = 44
_AUTHENTICATION: Final = 51
_ICMPV6: Final = 58
_DESTINATION: Final = 60


class Frame(NamedTuple):
    """An Ethernet frame, as far as the controller looks. `ends` are there for IP alone."""

    source_mac: bytes
    kind: Literal["ip", "discovery", "probe", "other"]
    protocol: int = 0
    ends: tuple[tuple[IPAddress, int], tuple[IPAddress, int]] | None = None
    payload: bytes = b""


def read_frame(data: bytes) -> Frame | None:
    """Reads a frame as the switch's own matching does; None when it is cut short.

    Ports are 0 for all fragments (OFPC_FRAG_NORMAL) and for what is neither TCP nor UDP.
    """
    try:
        return _read(data)
    except (struct.error, IndexError):
        return None


def _read(data: bytes) -> Frame:
    source = data[6:12]
    (eth_type,) = struct.unpack_from("!H", data, 12)
    at = 14
    if eth_type in _TAGS:
        (eth_type,) = struct.unpack_from("!H", data, 16)
        at = 18
    if eth_type == ETH_IPV4:
        return _ipv4(source, data, at)
    if eth_type == ETH_IPV6:
        return _ipv6(source, data, at)
    if eth_type == ETH_ARP:
        return Frame(source, "discovery")
    if eth_type == ETH_PROBE:
        return Frame(source, "probe", payload=data[at:])
    return Frame(source, "other")


def _ports(protocol: int, data: bytes, at: int, fragment: bool) -> tuple[int, int]:
    if fragment or protocol not in (TCP, UDP):
        return 0, 0
    source, target = struct.unpack_from("!HH", data, at)
    return source, target


def _ipv4(source: bytes, data: bytes, at: int) -> Frame:
    header = (data[at] & 0x0F) * 4
    (fragment,) = struct.unpack_from("!H", data, at + 6)
    protocol = data[at + 9]
    start, end = struct.unpack_from("!II", data, at + 12)
    ports = _ports(protocol, data, at + header, bool(fragment & 0x3FFF))
    ends = ((ipaddress.IPv4Address(start), ports[0]), (ipaddress.IPv4Address(end), ports[1]))
    return Frame(source, "ip", protocol, ends)


def _ipv6(source: bytes, data: bytes, at: int) -> Frame:
    protocol = data[at + 6]
    start, end = struct.unpack_from("!16s16s", data, at + 8)
    at += 40
    fragment = False
    while protocol in (_HOP_BY_HOP, _ROUTING, _DESTINATION, _AUTHENTICATION, _FRAGMENT):
        following, length = data[at], data[at + 1]
        if protocol == _FRAGMENT:
            fragment = True
            (offset,) = struct.unpack_from("!H", data, at + 2)
            if offset & 0xFFF8:  # a later fragment: the switch calls it protocol 44
                break
            at += 8
        else:
            at += (length + 2) * 4 if protocol == _AUTHENTICATION else (length + 1) * 8
        protocol = following
    if protocol == _ICMPV6 and not fragment and 133 <= data[at] <= 137:
        return Frame(source, "discovery")
    ports = _ports(protocol, data, at, fragment)
    ends = ((ipaddress.IPv6Address(start), ports[0]), (ipaddress.IPv6Address(end), ports[1]))
    return Frame(source, "ip", protocol, ends)


def flow_of(frame: Frame, side: Side) -> FiveTuple | None:
    """The flow of a frame that entered from an edge port of `side`: the client is the A side's end."""
    if frame.ends is None:
        return None
    source, target = frame.ends
    client, server = (source, target) if side == "A" else (target, source)
    return FiveTuple(frame.protocol, client[0], client[1], server[0], server[1])


# ---------------------------------------------------------------- probes

_PROBE: Final = struct.Struct("!4s8sHHcxI")
_PROBE_MAGIC: Final = b"SLPB"
TOKEN_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class Probe:
    """A frame that must come out at the other end of its line. `side` is where it went in."""

    site_index: int
    line_index: int
    side: Side
    number: int


def _probe_mac(probe: Probe, side: Side) -> bytes:
    # Locally administered, one per line's end: a learning bridge on the line sees two steady hosts.
    return bytes((0x02, 0x51, probe.site_index & 0xFF)) + struct.pack("!H", probe.line_index) + side.encode()


def probe_frame(probe: Probe, token: bytes) -> bytes:
    """The frame of a probe. `token`: 8 bytes only this process knows, so that nobody fakes one."""
    other: Side = "B" if probe.side == "A" else "A"
    frame = (
        _probe_mac(probe, other)
        + _probe_mac(probe, probe.side)
        + struct.pack("!H", ETH_PROBE)
        + _PROBE.pack(
            _PROBE_MAGIC, token, probe.site_index, probe.line_index, probe.side.encode(), probe.number
        )
    )
    return frame.ljust(60, b"\0")


def read_probe(payload: bytes, token: bytes) -> Probe | None:
    """The probe in a frame's payload; None when it is not one of this process."""
    if len(payload) < _PROBE.size:
        return None
    magic, theirs, site, line, side, number = _PROBE.unpack_from(payload)
    if magic != _PROBE_MAGIC or theirs != token or side not in (b"A", b"B"):
        return None
    return Probe(site, line, "A" if side == b"A" else "B", number)
