"""Numbered, paced UDP flows: what is lost, late or out of order is seen by number and time.

    python -m steerline_testbed.measure.paced send --source 198.19.0.1 --rate 100 --size 200 --until 120
    python -m steerline_testbed.measure.paced receive --bind 198.18.1.11 --server 198.19.0.1 \\
        --ports 7001,7002 --record FILE

A receiver greets the sender from each of its ports until the first packet comes (the customer opens
the flow, as behind a home router it must). Records are binary: port, number, CLOCK_MONOTONIC in ns.
"""

from __future__ import annotations

import argparse
import selectors
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

SERVER_PORT = 7000
PACKET = struct.Struct("!IQ")
ENTRY = struct.Struct("!HIQ")
GREETING_S = 0.2
STREAM_PERIOD_S = 0.02
CONNECT_S = 10.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """One packet as it came: its number, and when (CLOCK_MONOTONIC, ns)."""

    number: int
    at_ns: int


@dataclass(frozen=True, slots=True)
class Account:
    """What became of one flow's packets between the first and the last that came."""

    sent: int
    lost: int
    doubled: int
    reordered: int
    longest_gap_s: float


def account(arrivals: Sequence[Arrival]) -> Account:
    """Counts by number. A packet is reordered when a later number came before it (RFC 4737, section 3.3).

    Numbers before the first and after the last that came are not judged: the flow may not have been
    open yet, or the end was cut off.
    """
    if not arrivals:
        return Account(0, 0, 0, 0, 0.0)
    numbers = [a.number for a in arrivals]
    seen = set(numbers)
    sent = max(seen) - min(seen) + 1
    reordered, highest = 0, -1
    for number in numbers:
        if number < highest:
            reordered += 1
        highest = max(highest, number)
    gaps = [(b.at_ns - a.at_ns) / 1e9 for a, b in pairwise(arrivals)]
    return Account(sent, sent - len(seen), len(numbers) - len(seen), reordered, max(gaps, default=0.0))


def read(path: Path) -> dict[int, list[Arrival]]:
    """A receiver's record: arrivals by port, in order. A half-written last entry is left out."""
    data = path.read_bytes()
    found: dict[int, list[Arrival]] = {}
    for port, number, at_ns in ENTRY.iter_unpack(data[: len(data) - len(data) % ENTRY.size]):
        found.setdefault(port, []).append(Arrival(number, at_ns))
    return found


def _udp(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.bind((address, port))
    made.setblocking(False)
    return made


def serve_stream(address: str, rate_bps: float) -> None:
    """One TCP stream per connection at a given rate, for counting retransmissions. Daemon threads."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.create_server((address, SERVER_PORT), family=family)
    chunk = b"\0" * max(1, int(rate_bps / 8 * STREAM_PERIOD_S))

    def feed(peer: socket.socket) -> None:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        next_at = time.monotonic()
        try:
            while True:
                peer.sendall(chunk)
                next_at += STREAM_PERIOD_S
                time.sleep(max(0.0, next_at - time.monotonic()))
        except OSError:
            peer.close()

    def accept() -> None:
        while True:
            peer, _ = server.accept()
            threading.Thread(target=feed, args=(peer,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def _open_stream(options: argparse.Namespace) -> socket.socket:
    """Connects from the given port; the sender may take a moment to listen."""
    family = socket.AF_INET6 if ":" in options.bind else socket.AF_INET
    until = time.monotonic() + CONNECT_S
    while True:
        stream = socket.socket(family, socket.SOCK_STREAM)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stream.bind((options.bind, options.stream))
        try:
            stream.connect((options.server, SERVER_PORT))
        except ConnectionRefusedError:
            stream.close()
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
            continue
        stream.setblocking(False)
        return stream


def send(options: argparse.Namespace) -> None:
    """Answers each greeting's address with numbered packets at `rate` per second, on schedule."""
    sock = _udp(options.source, SERVER_PORT)
    if options.stream_bps:
        serve_stream(options.source, options.stream_bps)
    peers: dict[tuple[str, int], None] = {}
    period = 1.0 / options.rate
    padding = b"\0" * max(0, options.size - PACKET.size)
    start = time.monotonic()
    number = 0
    while time.monotonic() - start < options.until:
        number += 1
        delay = start + number * period - time.monotonic()
        if delay > 0:
            time.sleep(delay)
        while True:
            try:
                _, peer = sock.recvfrom(64)
            except BlockingIOError:
                break
            peers[peer[:2]] = None
        for peer in peers:
            sock.sendto(PACKET.pack(number, time.monotonic_ns()) + padding, peer)


def receive(options: argparse.Namespace) -> None:
    """Records every packet that comes, until it is told to stop."""
    selector = selectors.DefaultSelector()
    sockets = {port: _udp(options.bind, port) for port in options.ports}
    for port, sock in sockets.items():
        selector.register(sock, selectors.EVENT_READ, port)
    if options.stream:
        selector.register(_open_stream(options), selectors.EVENT_READ, None)
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    waiting = set(options.ports)
    greeted = 0.0
    with Path(options.record).open("ab") as out:
        while not stopped:
            if waiting and time.monotonic() - greeted > GREETING_S:
                greeted = time.monotonic()
                for port in waiting:
                    sockets[port].sendto(str(port).encode(), (options.server, SERVER_PORT))
            for key, _ in selector.select(0.1):
                if key.data is None:
                    _discard(selector, key)
                    continue
                sock: socket.socket = sockets[key.data]
                while True:
                    try:
                        data = sock.recv(2048)
                    except (BlockingIOError, ConnectionRefusedError):
                        break
                    number, _sent = PACKET.unpack_from(data)
                    out.write(ENTRY.pack(key.data, number, time.monotonic_ns()))
                    waiting.discard(key.data)


def _discard(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    stream: socket.socket = key.fileobj  # type: ignore[assignment]
    if not stream.recv(65536):
        selector.unregister(stream)
        stream.close()


def _ports(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    """Runs one end."""
    parser = argparse.ArgumentParser(prog="paced", description="numbered, paced UDP flows")
    roles = parser.add_subparsers(required=True)
    sender = roles.add_parser("send", help="the server's end")
    sender.add_argument("--source", required=True, help="own address")
    sender.add_argument("--rate", type=float, default=100.0, help="packets per second of each flow")
    sender.add_argument("--size", type=int, default=200, help="bytes of each packet's payload")
    sender.add_argument("--until", type=float, default=60.0, help="seconds")
    sender.add_argument("--stream-bps", type=float, default=0.0, help="serve TCP streams of this rate too")
    sender.set_defaults(role=send)
    receiver = roles.add_parser("receive", help="the customer's end")
    receiver.add_argument("--bind", required=True, help="own address")
    receiver.add_argument("--server", required=True, help="the sender's address")
    receiver.add_argument("--ports", type=_ports, required=True)
    receiver.add_argument("--record", required=True)
    receiver.add_argument("--stream", type=int, default=0, help="also read a TCP stream from this own port")
    receiver.set_defaults(role=receive)
    options = parser.parse_args()
    options.role(options)


if __name__ == "__main__":
    sys.exit(main())
