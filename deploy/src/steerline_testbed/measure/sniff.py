"""Sees each packet of one UDP flow as it enters a line at switch B, with the kernel's time stamp."""

from __future__ import annotations

import ctypes
import selectors
import socket
import struct
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

_SO_ATTACH_FILTER = 26
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("qq")


@dataclass(frozen=True, slots=True)
class Sighting:
    """A packet on a line; `at_ns` is CLOCK_MONOTONIC."""

    line: str
    at_ns: int


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jt", ctypes.c_ubyte),
        ("jf", ctypes.c_ubyte),
        ("k", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _udp_from(port: int) -> ctypes.Array[_Instruction]:
    """Classic BPF: IPv4, UDP, source port (what `tcpdump -dd 'ip and udp src port N'` checks)."""
    return (_Instruction * 10)(
        _Instruction(0x28, 0, 0, 12),  # EtherType
        _Instruction(0x15, 0, 7, 0x0800),
        _Instruction(0x30, 0, 0, 23),  # protocol
        _Instruction(0x15, 0, 5, 17),
        _Instruction(0xB1, 0, 0, 14),  # X = header length
        _Instruction(0x48, 0, 0, 14),  # source port
        _Instruction(0x15, 0, 2, port),
        _Instruction(0x06, 0, 0, 128),
        _Instruction(0x06, 0, 0, 0),
        _Instruction(0x06, 0, 0, 0),
    )


class Sniffer:
    """Watches the ports of B's lines in this network namespace, in a thread of its own."""

    def __init__(self, ports: Mapping[str, str], source_port: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._sightings: list[Sighting] = []
        self._lock = threading.Lock()
        # Realtime stamps of the kernel become monotonic ones by the difference now.
        self._offset_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
        program = _udp_from(source_port)
        self._keep = program
        for line, port in ports.items():
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            attached = _Program(len(program), ctypes.addressof(program))
            sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, bytes(attached))
            sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            sock.bind((port, 0x0003))
            sock.setblocking(False)
            self._selector.register(sock, selectors.EVENT_READ, line)
        self._stopped = False
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopped:
            for key, _ in self._selector.select(0.2):
                sock: socket.socket = key.fileobj  # type: ignore[assignment]
                while True:
                    try:
                        _, control, _, address = sock.recvmsg(64, 64)
                    except BlockingIOError:
                        break
                    if address[2] != socket.PACKET_OUTGOING:
                        continue
                    seconds, nanoseconds = _TIMESPEC.unpack(control[0][2])
                    at_ns = seconds * 1_000_000_000 + nanoseconds - self._offset_ns
                    with self._lock:
                        self._sightings.append(Sighting(key.data, at_ns))

    def first_after(self, line: str, at_ns: int) -> int | None:
        """When the first packet after `at_ns` was seen on a line; None while there is none."""
        with self._lock:
            for sighting in self._sightings:
                if sighting.line == line and sighting.at_ns >= at_ns:
                    return sighting.at_ns
        return None

    def forget(self) -> None:
        """Drops what was seen until now."""
        with self._lock:
            self._sightings.clear()

    def close(self) -> None:
        """Stops watching."""
        self._stopped = True
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
