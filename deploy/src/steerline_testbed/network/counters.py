"""The kernel's own counters at the ends of the leased lines, read without starting a process.

/proc/thread-self/net/dev and a netlink socket, opened once from inside a namespace, go on showing that
namespace; a reading of five lines takes well under a millisecond.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from steerline_testbed.network.line import NEAR_A, NEAR_B
from steerline_testbed.network.namespaces import inside
from steerline_testbed.network.plan import Line

_RTM_NEWQDISC, _RTM_GETQDISC = 36, 38
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_REQUEST_DUMP = 0x301
_ROOT = 0xFFFFFFFF
_TCA_STATS = 3
_HEADER = struct.Struct("=IHHII")
_TCMSG = struct.Struct("=BBHiIII")
_TC_STATS = struct.Struct("=QIIIIIII")


@dataclass(frozen=True)
class DeviceCounters:
    """One device, since it was made; bytes are layer-2 bytes without checksum."""

    rx_bytes: int
    rx_packets: int
    tx_bytes: int
    tx_packets: int


@dataclass(frozen=True)
class LineCounters:
    """One leased line, since it was made. Layer-2 bytes (14 bytes of header, no checksum) and packets.

    `down` came out on A's side, `up` on B's; `*_in_*` went in on the other side. `*_drops` is what the queue
    before the shaper had no room for; `*_backlog_bytes` waits in it now.
    """

    down_bytes: int
    down_packets: int
    up_bytes: int
    up_packets: int
    down_in_bytes: int
    down_in_packets: int
    up_in_bytes: int
    up_in_packets: int
    down_drops: int
    up_drops: int
    down_backlog_bytes: int
    up_backlog_bytes: int


class NamespaceCounters:
    """Counters of one namespace's devices and their queues."""

    def __init__(self, namespace: str) -> None:
        self._devices, self._netlink = inside(namespace, _open)

    def devices(self) -> dict[str, DeviceCounters]:
        """Each device by name."""
        chunks: list[bytes] = []
        offset = 0
        while chunk := os.pread(self._devices, 65536, offset):
            chunks.append(chunk)
            offset += len(chunk)
        found: dict[str, DeviceCounters] = {}
        for line in b"".join(chunks).decode("ascii").splitlines()[2:]:
            name, _, numbers = line.partition(":")
            fields = [int(number) for number in numbers.split()]
            found[name.strip()] = DeviceCounters(fields[0], fields[1], fields[8], fields[9])
        return found

    def queues(self) -> dict[int, tuple[int, int]]:
        """Drops (packets) and backlog (bytes) of each device's root queue, by interface index."""
        request = _TCMSG.pack(0, 0, 0, 0, 0, 0, 0)
        header = _HEADER.pack(_HEADER.size + len(request), _RTM_GETQDISC, _REQUEST_DUMP, 1, 0)
        self._netlink.send(header + request)
        return dict(self._read_queues())

    def _read_queues(self) -> Iterator[tuple[int, tuple[int, int]]]:
        while True:
            data = self._netlink.recv(65536)
            for kind, body in _messages(data):
                if kind == _NLMSG_DONE:
                    return
                if kind == _NLMSG_ERROR:
                    raise OSError(-struct.unpack_from("=i", body)[0], "reading queues over netlink")
                if kind == _RTM_NEWQDISC:
                    _, _, _, index, _, parent, _ = _TCMSG.unpack_from(body)
                    stats = _attribute(body[_TCMSG.size :], _TCA_STATS)
                    if parent == _ROOT and stats:
                        _, _, drops, _, _, _, _, backlog = _TC_STATS.unpack_from(stats)
                        yield index, (drops, backlog)

    def close(self) -> None:
        """Let go of the namespace."""
        os.close(self._devices)
        self._netlink.close()


class CounterReader:
    """Counters of all lines of a run."""

    def __init__(self, lines: tuple[Line, ...]) -> None:
        self._lines: Mapping[str, tuple[NamespaceCounters, int, int]] = {
            line.name: (NamespaceCounters(line.namespace), *inside(line.namespace, _ends)) for line in lines
        }

    def read(self) -> dict[str, LineCounters]:
        """Every line by name, as it is now."""
        return {name: _line(*where) for name, where in self._lines.items()}

    def close(self) -> None:
        """Let go of the namespaces, so that they can end."""
        for counters, _, _ in self._lines.values():
            counters.close()


def _open() -> tuple[int, socket.socket]:
    devices = os.open("/proc/thread-self/net/dev", os.O_RDONLY | os.O_CLOEXEC)
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    netlink.bind((0, 0))
    netlink.settimeout(2)
    return devices, netlink


def _ends() -> tuple[int, int]:
    return socket.if_nametoindex(NEAR_A), socket.if_nametoindex(NEAR_B)


def _line(counters: NamespaceCounters, index_a: int, index_b: int) -> LineCounters:
    devices, queues = counters.devices(), counters.queues()
    near_a, near_b = devices[NEAR_A], devices[NEAR_B]
    drops_a, backlog_a = queues.get(index_a, (0, 0))
    drops_b, backlog_b = queues.get(index_b, (0, 0))
    return LineCounters(
        down_bytes=near_a.tx_bytes,
        down_packets=near_a.tx_packets,
        up_bytes=near_b.tx_bytes,
        up_packets=near_b.tx_packets,
        down_in_bytes=near_b.rx_bytes,
        down_in_packets=near_b.rx_packets,
        up_in_bytes=near_a.rx_bytes,
        up_in_packets=near_a.rx_packets,
        down_drops=drops_a,
        up_drops=drops_b,
        down_backlog_bytes=backlog_a,
        up_backlog_bytes=backlog_b,
    )


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, offset)
        yield kind, data[offset + _HEADER.size : offset + length]
        offset += (length + 3) & ~3


def _attribute(data: bytes, wanted: int) -> bytes | None:
    offset = 0
    while offset + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, offset)
        if length < 4:
            return None
        if kind == wanted:
            return data[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return None
