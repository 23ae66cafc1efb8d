"""Measures a network through its switches, before the controller has them: rates, delays, leaks.

Frames of the local experimental EtherType, made here and sent from one host's own device to another's, with
one destination address per line; temporary rules carry each over its line. So what is measured is the path
that an experiment's packets take, and no kernel answers or slows them.
"""

from __future__ import annotations

import select
import socket
import statistics
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steerline_testbed.network.counters import CounterReader, LineCounters, NamespaceCounters
from steerline_testbed.network.namespaces import inside
from steerline_testbed.network.plan import Line, Node, Plan
from steerline_testbed.network.topology import FRAME_BYTES, LineSpec
from steerline_testbed.network.verdict import RateMeasurement, SwitchAccount

ETHERTYPE = 0x88B5
"""IEEE 802: local experimental EtherType 1."""

OVERLOAD = 1.25
WARM_UP_S = 0.15
LEAST_WINDOW_S = 0.5
_PACKETS_PER_WINDOW = 300
_LEAST_FRAME_BYTES = 100
_ECHOES = 15
_ECHO_GAP_S = 0.004
_SOURCE = bytes.fromhex("025500000000")
_BROADCAST = b"\xff" * 6


def line_address(number: int) -> str:
    """The destination address whose frames the temporary rules send over line `number`."""
    return f"02:55:00:00:01:{number:02x}"


def rules(plan: Plan, switch: str, ports: dict[str, int], host: Node) -> Iterator[str]:
    """Temporary rules of one switch: the host's probes over their lines, and from any line to the host."""
    port = ports[host.port]
    for number, line in enumerate(plan.lines):
        end = ports[line.port_a if switch == "A" else line.port_b]
        match = f"priority=65000,dl_type={ETHERTYPE:#x}"
        yield f"{match},in_port={port},dl_dst={line_address(number)},actions=output:{end}"
        yield f"{match},in_port={end},actions=output:{port}"


def open_socket(node: Node, receive: bool = False) -> socket.socket:
    """A raw socket on a host's device."""
    protocol = ETHERTYPE if receive else 0

    def make() -> socket.socket:
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
        raw.bind((node.device, protocol))
        raw.setblocking(False)
        return raw

    return inside(node.namespace, make)


def frame(destination: bytes, payload: bytes = b"", size: int = 60) -> bytes:
    """An Ethernet frame of `size` bytes, without checksum."""
    return (destination + _SOURCE + struct.pack("!H", ETHERTYPE) + payload).ljust(size, b"\0")


def _destination(number: int) -> bytes:
    return bytes.fromhex(line_address(number).replace(":", ""))


# closed paths


def find_leaks(plan: Plan, core: NamespaceCounters, settle_s: float = 0.06) -> tuple[str, ...]:
    """Switch ports out of which anything comes while every host shouts and no rule is there."""
    before = core.devices()
    for node in plan.edge:
        with open_socket(node) as raw:
            for _ in range(3):
                raw.send(frame(_BROADCAST))
    time.sleep(settle_s)
    after = core.devices()
    ports = [port for line in plan.lines for port in (line.port_a, line.port_b)]
    ports += [*plan.edge_ports("A"), *plan.edge_ports("B")]
    return tuple(port for port in ports if after[port].tx_packets != before[port].tx_packets)


# delay


def round_trips_ms(plan: Plan, near: Node, far: Node) -> dict[str, float | None]:
    """Median round-trip time of each idle line in ms; None where less than half of the echoes came back."""
    times_ms: list[list[float]] = [[] for _ in plan.lines]
    longest_s = max(2 * line.spec.delay_ms + 8 * line.spec.jitter_ms for line in plan.lines) / 1000
    with open_socket(near, receive=True) as asks, open_socket(far, receive=True) as answers:
        start_s = time.monotonic()
        sent = 0
        deadline_s = start_s + _ECHOES * _ECHO_GAP_S + longest_s + 0.25
        while (now_s := time.monotonic()) < deadline_s:
            if sent < _ECHOES and now_s >= start_s + sent * _ECHO_GAP_S:
                for number in range(len(plan.lines)):
                    asks.send(frame(_destination(number), struct.pack("!Bd", number, time.monotonic())))
                sent += 1
            readable, _, _ = select.select([asks, answers], [], [], 0.001)
            for raw in readable:
                data, address = raw.recvfrom(2048)
                if address[2] == socket.PACKET_OUTGOING:
                    continue
                number, sent_s = struct.unpack_from("!Bd", data, 14)
                if raw is answers:
                    answers.send(frame(_destination(number), data[14:23]))
                else:
                    times_ms[number].append((time.monotonic() - sent_s) * 1000)
            if sent == _ECHOES and all(len(times) == _ECHOES for times in times_ms):
                break
    return {
        # the first echoes meet switches that have not cached their rules yet
        line.name: statistics.median(times[2:]) if len(times) > _ECHOES // 2 else None
        for line, times in zip(plan.lines, times_ms, strict=True)
    }


# rate


@dataclass(frozen=True)
class _Load:
    """What is sent over one line: frames of `frame_bytes`, `bps` of them counted in layer-2 bits."""

    number: int
    line: Line
    frame_bytes: int
    bps: float


def frame_bytes(spec: LineSpec) -> int:
    """Frame size that makes a window of a slow line hold enough packets; full frames from about 7 Mbit/s."""
    size = int(spec.capacity_bps / 8 * LEAST_WINDOW_S / _PACKETS_PER_WINDOW)
    return min(FRAME_BYTES, max(_LEAST_FRAME_BYTES, size))


def window_s(specs: Sequence[LineSpec]) -> float:
    """How long the slowest line has to be watched."""
    slowest = max(_PACKETS_PER_WINDOW * frame_bytes(spec) * 8 / spec.capacity_bps for spec in specs)
    return max(LEAST_WINDOW_S, slowest)


def measure_rates(
    plan: Plan, lines: CounterReader, core: NamespaceCounters, sender: Node, receiver: Node
) -> tuple[dict[str, RateMeasurement], SwitchAccount]:
    """Load all lines above their rates from `sender`'s side at once; what each let out,
    and what the switches lost.
    """
    down = sender.side == "B"
    loads = [
        _Load(number, line, frame_bytes(line.spec), line.spec.capacity_bps * OVERLOAD / (1 - line.spec.loss))
        for number, line in enumerate(plan.lines)
    ]
    first, delivered_before = lines.read(), core.devices()[receiver.port].tx_packets
    with open_socket(sender) as raw:
        sent, (begin_s, begin), (end_s, end) = _blast(raw, loads, lines, window_s(plan.topology.lines))
    last = _drain(lines, plan, down)
    delivered = core.devices()[receiver.port].tx_packets - delivered_before
    elapsed_s = end_s - begin_s
    rates: dict[str, RateMeasurement] = {}
    for load in loads:
        name = load.line.name
        total, window = _gone(first[name], last[name], down), _gone(begin[name], end[name], down)
        rates[name] = RateMeasurement(
            rate_bps=window.out_bytes * 8 / elapsed_s,
            offered_bps=window.in_bytes * 8 / elapsed_s,
            entered=total.in_packets,
            dropped=total.drops,
            left=total.out_packets,
        )
    account = SwitchAccount(
        sent=sent,
        entered=sum(rate.entered for rate in rates.values()),
        left=sum(rate.left for rate in rates.values()),
        delivered=delivered,
    )
    return rates, account


_Reading = tuple[float, dict[str, LineCounters]]


def _blast(
    raw: socket.socket, loads: Sequence[_Load], lines: CounterReader, window: float
) -> tuple[int, _Reading, _Reading]:
    """Send all loads, paced; packets sent, and the counters at begin and end of the window."""
    frames = [frame(_destination(load.number), size=load.frame_bytes) for load in loads]
    gaps_s = [load.frame_bytes * 8 / load.bps for load in loads]
    sent = [0] * len(loads)
    start_s = time.monotonic()
    begin: _Reading | None = None
    while True:
        elapsed_s = time.monotonic() - start_s
        if begin is None and elapsed_s >= WARM_UP_S:
            begin = _timed(lines)
        if begin is not None and time.monotonic() - begin[0] >= window:
            return sum(sent), begin, _timed(lines)
        for index, gap_s in enumerate(gaps_s):
            # after a pause of the machine, catch up with 20 ms at most: what is late beyond that is not sent
            due = int(elapsed_s / gap_s)
            room = max(4, int(0.02 / gap_s))
            for _ in range(min(due - sent[index], room)):
                raw.send(frames[index])
                sent[index] += 1
        time.sleep(0.002)


def _timed(lines: CounterReader) -> _Reading:
    """Counters with the time at which they were read, known to 2 ms where the machine lets us."""
    tries = 0
    while True:
        tries += 1
        before_s = time.monotonic()
        counters = lines.read()
        after_s = time.monotonic()
        if after_s - before_s < 0.002 or tries == 5:
            return (before_s + after_s) / 2, counters


def _drain(lines: CounterReader, plan: Plan, down: bool) -> dict[str, LineCounters]:
    """Counters once nothing waits or travels any more."""
    longest_s = max(
        line.spec.queue_bytes * 8 / line.spec.capacity_bps
        + (line.spec.delay_ms + 4 * line.spec.jitter_ms) / 1000
        for line in plan.lines
    )
    deadline_s = time.monotonic() + longest_s + 0.5
    before = lines.read()
    while time.monotonic() < deadline_s:
        time.sleep(0.02 + max(line.spec.delay_ms + 4 * line.spec.jitter_ms for line in plan.lines) / 1000)
        now = lines.read()
        waiting = sum(c.down_backlog_bytes if down else c.up_backlog_bytes for c in now.values())
        if now == before and waiting == 0:
            break
        before = now
    return before


@dataclass(frozen=True)
class _Gone:
    in_bytes: int
    in_packets: int
    out_bytes: int
    out_packets: int
    drops: int


def _gone(before: LineCounters, after: LineCounters, down: bool) -> _Gone:
    if down:
        return _Gone(
            after.down_in_bytes - before.down_in_bytes,
            after.down_in_packets - before.down_in_packets,
            after.down_bytes - before.down_bytes,
            after.down_packets - before.down_packets,
            after.down_drops - before.down_drops,
        )
    return _Gone(
        after.up_in_bytes - before.up_in_bytes,
        after.up_in_packets - before.up_in_packets,
        after.up_bytes - before.up_bytes,
        after.up_packets - before.up_packets,
        after.up_drops - before.up_drops,
    )
