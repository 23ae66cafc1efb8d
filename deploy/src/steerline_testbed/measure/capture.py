"""A capture of headers as packets of connections: who spoke, when, and how many bytes of payload. Pure.

It reads what `tcpdump -s 128 -w` writes on an Ethernet interface: IPv4, TCP and UDP, no VLAN tags.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass

SNAPLEN = 128
TCP, UDP = 6, 17
_FILE_HEADER, _RECORD = 24, struct.Struct("<IIII")
_MICROSECONDS, _NANOSECONDS = 0xA1B2C3D4, 0xA1B23C4D
_ETHERNET = 14
_FIN_OR_RST = 0x05


@dataclass(frozen=True, slots=True, order=True)
class Connection:
    """A five-tuple, as the agent reports it."""

    protocol: int
    client_address: str
    client_port: int
    server_address: str
    server_port: int

    def __str__(self) -> str:
        kind = {TCP: "tcp", UDP: "udp"}.get(self.protocol, str(self.protocol))
        client = f"{self.client_address}:{self.client_port}"
        return f"{kind} {client} to {self.server_address}:{self.server_port}"


@dataclass(frozen=True, slots=True)
class Packet:
    """`time_s` is Unix time; `ends`: a FIN or a RST of TCP."""

    time_s: float
    connection: Connection
    down: bool
    payload_bytes: int
    ends: bool


def read_capture(content: bytes, server: str) -> Iterator[Packet]:
    """The packets from and to `server` (IPv4). A last record that is cut off is left out.

    Raises ValueError for what is no capture of this kind.
    """
    if len(content) < _FILE_HEADER:
        raise ValueError(f"a capture has at least {_FILE_HEADER} bytes; this one has {len(content)}")
    magic, link = struct.unpack_from("<I", content)[0], struct.unpack_from("<I", content, 20)[0]
    if magic not in (_MICROSECONDS, _NANOSECONDS) or link != 1:
        raise ValueError(f"not a pcap file of Ethernet: magic {magic:#x}, link type {link}")
    unit_s = 1e-6 if magic == _MICROSECONDS else 1e-9
    address = ipaddress.IPv4Address(server).packed
    at = _FILE_HEADER
    while at + _RECORD.size <= len(content):
        seconds, fraction, length, _ = _RECORD.unpack_from(content, at)
        at += _RECORD.size
        if at + length > len(content):
            return
        packet = _packet(seconds + fraction * unit_s, content[at : at + length], address)
        if packet is not None:
            yield packet
        at += length


def _packet(time_s: float, frame: bytes, server: bytes) -> Packet | None:
    ip = frame[_ETHERNET:]
    if frame[12:14] != b"\x08\x00" or len(ip) < 20 or ip[9] not in (TCP, UDP):
        return None
    if int.from_bytes(ip[6:8], "big") & 0x1FFF:  # a later fragment has no ports
        return None
    source, destination = ip[12:16], ip[16:20]
    header = (ip[0] & 15) * 4
    segment = ip[header:]
    if server not in (source, destination) or len(segment) < (14 if ip[9] == TCP else 8):
        return None
    ports = struct.unpack_from("!HH", segment)
    own = (segment[12] >> 4) * 4 if ip[9] == TCP else 8
    down = source == server
    client, client_port, server_port = (destination, ports[1], ports[0]) if down else (source, *ports)
    connection = Connection(
        ip[9],
        str(ipaddress.IPv4Address(client)),
        client_port,
        str(ipaddress.IPv4Address(server)),
        server_port,
    )
    payload = int.from_bytes(ip[2:4], "big") - header - own
    return Packet(time_s, connection, down, payload, ip[9] == TCP and bool(segment[13] & _FIN_OR_RST))
