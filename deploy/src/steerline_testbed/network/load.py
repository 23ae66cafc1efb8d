"""TCP downloads through the switches, without a controller: what they cost, and whether the sums agree.

Static rules spread the downloads over the lines: one port of the server per line, as many downloads on each.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steerline_testbed.network.counters import CounterReader, NamespaceCounters
from steerline_testbed.network.namespaces import inside
from steerline_testbed.network.plan import Plan

FIRST_PORT = 5001
_CHUNK = bytes(65536)


@dataclass(frozen=True)
class LoadReport:
    """What a load cost. CPU in seconds; packets in the download direction; `rho` by layer-2 bytes."""

    duration_s: float
    downloads: int
    delivered_bps: float
    rho: float
    switch_cpu_s: float
    machine_cpu_s: float
    generator_cpu_s: float
    cores: int
    sent: int
    entered_lines: int
    dropped_by_queues: int
    left_lines: int
    delivered: int

    @property
    def uncounted(self) -> int:
        """Packets that the switches lost between their ports."""
        return (self.sent - self.entered_lines) + (self.left_lines - self.delivered)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "uncounted": self.uncounted}

    def text(self) -> str:
        """For people."""
        whole = self.sent + self.left_lines
        machine, switches, generator = (
            seconds / self.duration_s
            for seconds in (self.machine_cpu_s, self.switch_cpu_s, self.generator_cpu_s)
        )
        return (
            f"{self.downloads} TCP downloads for {self.duration_s:.1f} s: "
            f"{self.delivered_bps / 1e6:.2f} Mbit/s, rho {self.rho:.3f}\n"
            f"CPU, in cores of {self.cores}: machine {machine:.2f}, of it the switches {switches:.2f}, "
            f"this load generator {generator:.2f}\n"
            f"packets down: {self.sent} sent, {self.entered_lines} into the lines, "
            f"{self.dropped_by_queues} dropped by their queues, {self.left_lines} out of them, "
            f"{self.delivered} delivered; uncounted {self.uncounted} ({self.uncounted / whole:.4%})"
        )


def rules(plan: Plan, switch: str, ports: dict[str, int]) -> Iterator[str]:
    """Deliver by address; the rest takes the line that the server's port stands for, ARP the first."""
    for node in plan.edge:
        if node.side == switch:
            yield f"priority=20,ip,nw_dst={node.ipv4},actions=output:{ports[node.port]}"
            yield f"priority=20,arp,arp_tpa={node.ipv4},actions=output:{ports[node.port]}"
    for number, line in enumerate(plan.lines):
        end = ports[line.port_a if switch == "A" else line.port_b]
        which = "tp_dst" if switch == "A" else "tp_src"
        yield f"priority=10,tcp,{which}={FIRST_PORT + number},actions=output:{end}"
        if number == 0:
            yield f"priority=10,arp,actions=output:{end}"


def run(plan: Plan, lines: CounterReader, switch_pid: int, downloads: int, duration_s: float) -> LoadReport:
    """Load the network for `duration_s` after a second of warming up."""
    server, customer = plan.nodes["download-server"], plan.nodes["downloader"]
    with (
        contextlib.ExitStack() as stack,
        contextlib.closing(NamespaceCounters(plan.core.namespace)) as core,
        selectors.DefaultSelector() as selector,
    ):
        listeners = [
            stack.enter_context(
                inside(server.namespace, lambda p=FIRST_PORT + number: socket.create_server((server.ipv4, p)))
            )
            for number in range(len(plan.lines))
        ]
        for number in range(downloads):
            listener = listeners[number % len(listeners)]
            address = listener.getsockname()
            sink = stack.enter_context(
                inside(customer.namespace, lambda a=address: socket.create_connection(a, timeout=5))
            )
            source = stack.enter_context(listener.accept()[0])
            for connection, events in ((sink, selectors.EVENT_READ), (source, selectors.EVENT_WRITE)):
                connection.setblocking(False)
                selector.register(connection, events)
        before_down = lines.read(), core.devices()
        _pump(selector, 1.0)
        begin, begin_cpu, begin_s = lines.read(), _cpu(switch_pid), time.monotonic()
        received = _pump(selector, duration_s)
        end, end_cpu, end_s = lines.read(), _cpu(switch_pid), time.monotonic()
        for key in list(selector.get_map().values()):
            selector.unregister(key.fileobj)
    time.sleep(0.5)
    with contextlib.closing(NamespaceCounters(plan.core.namespace)) as core:
        after_lines, after_core = lines.read(), core.devices()
    first_lines, first_core = before_down
    elapsed_s = end_s - begin_s
    out_bytes = sum(end[name].down_bytes - begin[name].down_bytes for name in end)

    def total(field: str) -> int:
        return sum(getattr(after_lines[n], field) - getattr(first_lines[n], field) for n in after_lines)

    return LoadReport(
        duration_s=elapsed_s,
        downloads=downloads,
        delivered_bps=received * 8 / elapsed_s,
        rho=out_bytes * 8 / elapsed_s / plan.topology.capacity_bps,
        switch_cpu_s=end_cpu[0] - begin_cpu[0],
        machine_cpu_s=end_cpu[1] - begin_cpu[1],
        generator_cpu_s=end_cpu[2] - begin_cpu[2],
        cores=os.cpu_count() or 1,
        sent=sum(after_core[p].rx_packets - first_core[p].rx_packets for p in plan.edge_ports("B")),
        entered_lines=total("down_in_packets"),
        dropped_by_queues=total("down_drops"),
        left_lines=total("down_packets"),
        delivered=sum(after_core[p].tx_packets - first_core[p].tx_packets for p in plan.edge_ports("A")),
    )


def _pump(selector: selectors.BaseSelector, duration_s: float) -> int:
    """Send and receive for a while; bytes received."""
    received = 0
    buffer = bytearray(1 << 18)
    deadline_s = time.monotonic() + duration_s
    while time.monotonic() < deadline_s:
        for key, events in selector.select(0.05):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            if events & selectors.EVENT_READ:
                received += connection.recv_into(buffer)
            else:
                with contextlib.suppress(BlockingIOError):
                    connection.send(_CHUNK)
    return received


def _cpu(pid: int) -> tuple[float, float, float]:
    """CPU seconds of a process, of the whole machine (not idle, not waiting), and of this process."""
    tick = os.sysconf("SC_CLK_TCK")
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    whole = [
        int(field) for field in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    ]
    busy = sum(whole) - whole[3] - whole[4] - whole[7]
    return (int(fields[11]) + int(fields[12])) / tick, busy / tick, time.process_time()
