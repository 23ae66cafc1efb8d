"""The self-assertion: opens temporary paths through the switches, measures, closes them,
gives the verdict.
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Generator, Iterator

from steerline_testbed.network import probe
from steerline_testbed.network.counters import CounterReader, NamespaceCounters
from steerline_testbed.network.hosts import BRIDGE, UPLINK, server_port
from steerline_testbed.network.line import devices as line_devices
from steerline_testbed.network.namespaces import inside
from steerline_testbed.network.plan import Line, Node, Plan
from steerline_testbed.network.switches import DATAPATH_IDS, Switches
from steerline_testbed.network.tools import call
from steerline_testbed.network.verdict import CheckReport, Measurements, problems, rtt_allowed_ms

_ROUNDS = 5
# tunnel devices that appear by themselves in every namespace where their module is loaded
_BORN_WITH_NAMESPACE = re.compile(r"(tunl|gre|gretap|erspan|sit|ip6tnl|ip6gre|ip_vti|ip6_vti)0")
_CONGESTION_CONTROL = re.compile(r"^\s+(?:\w+:\S+\s+)*?(\w+)\s+(?:wscale|rto|ts|sack)")


def check(plan: Plan, switches: Switches, lines: CounterReader, attempts: int) -> CheckReport:
    """Measure and judge. A failure is measured again, `attempts` times in all, for a machine may hiccup once.

    Wants switches without rules and without a controller; leaves them so.
    """
    begin_s = time.monotonic()
    attempt = 0
    while True:
        attempt += 1
        measured = _measure(plan, switches, lines)
        found = problems(plan.topology, measured)
        if not found or attempt >= attempts:
            return CheckReport(plan.topology, measured, time.monotonic() - begin_s, attempt, found)


def _measure(plan: Plan, switches: Switches, lines: CounterReader) -> Measurements:
    near, far = plan.nodes["downloader"], plan.nodes["download-server"]
    with contextlib.closing(NamespaceCounters(plan.core.namespace)) as core:
        leaks = probe.find_leaks(plan, core)
        probing = {
            "A": list(probe.rules(plan, "A", switches.numbers, near)),
            "B": list(probe.rules(plan, "B", switches.numbers, far)),
        }
        with _temporary(switches, probing):
            rtt_ms = _calm_round_trips_ms(plan, near, far)
            down, down_account = probe.measure_rates(plan, lines, core, far, near)
            up, up_account = probe.measure_rates(plan, lines, core, near, far)
        working = [line for line in plan.lines if rtt_ms[line.name] is not None]
        seen = _congestion_controls_over(working[0], plan, switches) if working else {}
    return Measurements(
        rates={line.name: {"down": down[line.name], "up": up[line.name]} for line in plan.lines},
        rtt_ms=rtt_ms,
        switches={"down": down_account, "up": up_account},
        leaks=leaks,
        strangers=tuple(_strangers(plan)),
        congestion_control=seen,
    )


def _calm_round_trips_ms(plan: Plan, near: Node, far: Node) -> dict[str, float | None]:
    """Each line's least median of a few rounds: the line's own delay, not a busy machine's."""
    best = probe.round_trips_ms(plan, near, far)
    for _ in range(_ROUNDS - 1):
        if all(_below(best[spec.name], rtt_allowed_ms(spec)[1]) for spec in plan.topology.lines):
            break
        time.sleep(0.05)
        again = probe.round_trips_ms(plan, near, far)
        for name, rtt_ms in again.items():
            best[name] = min((t for t in (best[name], rtt_ms) if t is not None), default=None)
    return best


def _below(rtt_ms: float | None, most_ms: float) -> bool:
    return rtt_ms is not None and rtt_ms < most_ms


def _congestion_controls_over(line: Line, plan: Plan, switches: Switches) -> dict[str, tuple[str, ...]]:
    rules = {switch: list(forwarding(plan, switch, switches.numbers, line)) for switch in DATAPATH_IDS}
    with _temporary(switches, rules):
        return congestion_controls(plan)


@contextlib.contextmanager
def _temporary(switches: Switches, rules: dict[str, list[str]]) -> Generator[None]:
    try:
        for switch, lines in rules.items():
            switches.ofctl("add-flows", switch, "-", stdin="\n".join(lines) + "\n")
        yield
    finally:
        for switch in rules:
            switches.ofctl("del-flows", switch)


def forwarding(plan: Plan, switch: str, ports: dict[str, int], line: Line) -> Iterator[str]:
    """Every address to its edge port, over `line` where it is on the other side."""
    to_line = ports[line.port_a if switch == "A" else line.port_b]
    for node in plan.edge:
        out = ports[node.port] if node.side == switch else to_line
        for address in node.addresses:
            if ":" in address:
                yield f"priority=100,ipv6,ipv6_dst={address},actions=output:{out}"
                yield f"priority=200,icmp6,icmp_type=135,nd_target={address},actions=output:{out}"
            else:
                yield f"priority=100,ip,nw_dst={address},actions=output:{out}"
                yield f"priority=100,arp,arp_tpa={address},actions=output:{out}"


def _strangers(plan: Plan) -> Iterator[str]:
    """Devices beyond those that the testbed made, in the namespaces of hosts and lines."""
    expected = {node.namespace: {"lo", "eth0"} for node in plan.nodes.values()}
    expected[plan.router.namespace] |= {"lan"} | {f"lan{n}" for n in range(1, len(plan.household) + 1)}
    ports = {port for line in plan.lines for port in (line.port_a, line.port_b)}
    ports |= {*plan.edge_ports("A"), *plan.edge_ports("B")}
    expected[plan.core.namespace] = {"lo", plan.core.device, "ovs-netdev", "ovs-system", "A", "B"} | ports
    expected[plan.internet] = {"lo", BRIDGE, UPLINK, *(server_port(node) for node in plan.servers)}
    for line in plan.lines:
        expected[line.namespace] = {"lo", *line_devices(line.spec)}
    for namespace, known in expected.items():
        for _, device in inside(namespace, socket.if_nameindex):
            if device not in known and not _BORN_WITH_NAMESPACE.fullmatch(device):
                yield f"{namespace}/{device}"


# congestion control


def congestion_controls(plan: Plan) -> dict[str, tuple[str, ...]]:
    """What ss shows of one open TCP connection from each customer to each server, at both ends, per host."""
    servers = list(plan.servers)
    customers = [n for n in plan.nodes.values() if n not in servers and n is not plan.router]
    with contextlib.ExitStack() as stack:
        for server in servers:
            listener = stack.enter_context(_listen(server))
            port = listener.getsockname()[1]
            for customer in customers:
                # a host that cannot connect shows nothing in ss, and the verdict says so
                with contextlib.suppress(OSError):
                    stack.enter_context(_connect(customer, server.ipv4, port))
                    stack.enter_context(listener.accept()[0])
        return {node.name: _shown_by_ss(node) for node in (*customers, *servers)}


def _listen(node: Node) -> socket.socket:
    def make() -> socket.socket:
        listener = socket.create_server((node.ipv4, 0), backlog=128)
        listener.settimeout(2)
        return listener

    return inside(node.namespace, make)


def _connect(node: Node, address: str, port: int) -> socket.socket:
    return inside(node.namespace, lambda: socket.create_connection((address, port), timeout=2))


def _shown_by_ss(node: Node) -> tuple[str, ...]:
    shown = call(["ss", "-N", node.namespace, "-tinH", "state", "established"], f"look at TCP in {node.name}")
    return tuple(sorted({m.group(1) for row in shown.splitlines() if (m := _CONGESTION_CONTROL.match(row))}))
