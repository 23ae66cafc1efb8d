"""What the commands say: how to look around in a network, and what a check has found."""

from __future__ import annotations

import sys
from pathlib import Path

from steerline_testbed.network.plan import Plan
from steerline_testbed.network.services import REST_ADDRESS, STEERING_ADDRESS
from steerline_testbed.network.topology import Topology
from steerline_testbed.network.verdict import CheckReport


def shape(topology: Topology) -> str:
    """A topology in a few words."""
    rates = sorted({line.capacity_bps for line in topology.lines})
    each = " or ".join(f"{rate / 1e6:g}" for rate in rates)
    viewers = f"{topology.viewers} viewer{'s' if topology.viewers > 1 else ''}"
    behind = " behind NAT" if topology.nat else ""
    return f"{len(topology.lines)} lines of {each} Mbit/s, {viewers}{behind}, {topology.congestion_control}"


def text(plan: Plan, directory: Path) -> str:
    """Who is where in a run, and the commands to look at it from inside."""
    core = f"ip netns exec {plan.core.namespace}"
    viewer = next(n for n in plan.nodes.values() if n.name in ("viewer1", "home1")).namespace
    server = plan.nodes["video-server"].ipv4
    tools = Path(sys.executable).parent
    rows = [f"run {plan.run_id} is up: {shape(plan.topology)}", "", "hosts"]
    for node in plan.nodes.values():
        what = "switches, controller, station" if node is plan.core else ""
        rows.append(
            f"  {node.name:16} {node.namespace:28} {node.port:14} {' '.join(node.addresses)}  {what}".rstrip()
        )
    rows += ["", "lines"]
    for line in plan.lines:
        rate = f"{line.spec.capacity_bps / 1e6:g} Mbit/s"
        rows.append(f"  {line.name:16} {line.namespace:28} {line.port_a} = {line.port_b}  {rate}")
    switch = f"ovs-ofctl -O OpenFlow13 dump-flows unix:{directory}/ovs/A.mgmt"
    rows += [
        "",
        "look around (as root)",
        f"  a host's shell      ip netns exec {viewer} bash",
        f"  across the lines    ip netns exec {viewer} ping {server}",
        f"  a switch's rules    {switch}",
        f"  a line's queue      tc -n {plan.lines[0].namespace} -s qdisc show dev to-a",
        f"  the station         {core} curl -s http://{REST_ADDRESS}/openapi.json",
        f"  the controller      {core} {tools}/steerline-controller state --steering {STEERING_ADDRESS}",
        f"  cut a line          {tools}/steerline-testbed cut {plan.run_id} {plan.lines[0].name}",
        f"  settings and logs   {directory}",
        f"  end it              {tools}/steerline-testbed down {plan.run_id}",
    ]
    return "\n".join(rows)


def verdict(report: CheckReport) -> str:
    """A check's report as a table."""
    rows = [f"{'line':13} {'asked':>9} {'down':>9} {'up':>9}   round trip"]
    for name, line in report.as_dict()["lines"].items():
        rtt = "none" if line["rtt_ms"] is None else f"{line['rtt_ms']:.2f} ms"
        rows.append(
            f"{name:13} {line['capacity_bps'] / 1e6:9.3f} {line['down_bps'] / 1e6:9.3f} "
            f"{line['up_bps'] / 1e6:9.3f}   {rtt}"
        )
    rows.append("rates in Mbit/s of layer-2 bytes, all lines loaded at once")
    if report.passed:
        tries = "" if report.attempts == 1 else f", at attempt {report.attempts}"
        rows.append(f"this is the network asked for (measured in {report.duration_s:.1f} s{tries})")
    else:
        rows.append("this is NOT the network asked for:")
        rows += [f"  {problem}" for problem in report.problems]
    return "\n".join(rows)
