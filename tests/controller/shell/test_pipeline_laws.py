"""Laws of the pipeline, on the fake switch that the contract test holds against Open vSwitch."""

from __future__ import annotations

import ipaddress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from steerline_contract.flows import UDP, FiveTuple
from steerline_controller.shell.inputs import PortInfo
from steerline_controller.shell.openflow.fake import FakeSwitch, messages
from steerline_controller.shell.openflow.rules import CONTROLLER
from steerline_controller.shell.switch import Switch, SwitchPlan

LINES = (1, 2, 3)
EDGES = (4, 5, 6)
HOSTS = {"A": "198.18.0.11", "B": "198.18.0.101"}
MACS = {("A", 4): "02:00:00:00:00:04", ("B", 5): "02:00:00:00:01:05"}


class _Batch:
    """Collects what a switch is told, message by message."""

    peer = "batch"

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    def send(self, data: bytes, /) -> None:
        self.messages += messages(data)

    def close(self) -> None:
        pass


def batch(side: Any, mode: Any) -> list[bytes]:
    """Everything that a switch is told: pipeline, hosts learnt, two flows."""
    lines = tuple((f"line{i}", f"p{i}") for i in LINES)
    edges = tuple(f"p{i}" for i in EDGES)
    hosts = ((ipaddress.ip_address(HOSTS[side]), "p6"),)
    plan = SwitchPlan("home", side, 1, lines, edges, hosts)
    out = _Batch()
    switch = Switch(plan, out, {f"p{i}": PortInfo(i, True) for i in (*LINES, *EDGES)}, mode, 30)
    switch.start({"line1": 1, "line2": 2, "line3": 1}, "line1")
    for (at, port), mac in MACS.items():
        if at == side:
            switch.learn(bytes.fromhex(mac.replace(":", "")), port)
    one, two = (ipaddress.ip_address(HOSTS[s]) for s in "AB")
    switch.place(FiveTuple(UDP, one, 7, two, 8), "line1", "best-effort")
    switch.place(FiveTuple(UDP, one, 9, two, 8), "line1", "steered")
    switch.flush()
    return out.messages


BATCHES = {
    (side, mode): batch(side, mode) for side in ("A", "B") for mode in ("reactive", "reactive-with-fallback")
}

addresses = st.sampled_from([*HOSTS.values(), "198.18.0.77"])
macs = st.sampled_from([*MACS.values(), "ff:ff:ff:ff:ff:ff", "33:33:00:00:00:01", "02:00:00:00:00:77",
                        "01:80:c2:00:00:00"])  # fmt: skip


@st.composite
def packets(draw: st.DrawFn) -> dict[str, int | str]:
    """Packets of every kind that the pipeline tells apart."""
    packet: dict[str, int | str] = {"eth_dst": draw(macs), "eth_src": "02:00:00:00:00:99"}
    kind = draw(st.sampled_from(["arp", "udp", "icmp", "nd", "ipv6", "probe", "other"]))
    if kind in ("udp", "icmp"):
        packet |= {"eth_type": 0x800, "ipv4_src": draw(addresses), "ipv4_dst": draw(addresses)}
        packet["ip_proto"] = UDP if kind == "udp" else 1
        if kind == "udp":
            packet |= {"udp_src": draw(st.sampled_from([7, 8, 9])), "udp_dst": draw(st.sampled_from([7, 8]))}
    elif kind in ("nd", "ipv6"):
        packet |= {"eth_type": 0x86DD, "ipv6_src": "fe80::1", "ipv6_dst": "fe80::2", "ip_proto": 58}
        packet["icmpv6_type"] = 135 if kind == "nd" else 128
    else:
        packet["eth_type"] = {"arp": 0x806, "probe": 0x88B5, "other": 0x9000}[kind]
    return packet


def crossings(switches: dict[str, FakeSwitch], side: str, port: int, packet: Any, left: int = 6) -> int:
    """The most line crossings that any way of this packet takes; `left` ends a loop."""
    if left == 0:
        return 0
    other = "B" if side == "A" else "A"
    most = 0
    for outcome in switches[side].outcomes(port, packet):
        assert port not in outcome, "back out of the port it came by"
        for out in outcome - {CONTROLLER}:
            if out in LINES:
                most = max(most, 1 + crossings(switches, other, out, packet, left - 1))
    return most


def made(batches: dict[str, list[bytes]], carrier: set[int]) -> dict[str, FakeSwitch]:
    """Two switches that have taken these messages."""
    switches = {}
    for side, told in batches.items():
        switches[side] = FakeSwitch({port: port not in carrier for port in (*LINES, *EDGES)})
        switches[side].send(b"".join(told))
    return switches


modes = st.sampled_from(["reactive", "reactive-with-fallback"])
sides = st.sampled_from(["A", "B"])


@settings(max_examples=300, deadline=None)
@given(modes, st.data(), packets(), sides, st.sampled_from([*LINES, *EDGES]), st.sets(st.sampled_from(LINES)))
def test_no_loop_under_any_prefix(
    mode: str, data: st.DataObject, packet: Any, side: str, port: int, dark: set[int]
) -> None:
    """A packet crosses at most one line, whatever part of the batch either switch has taken."""
    batches = {}
    for at in ("A", "B"):
        whole = BATCHES[at, mode]
        batches[at] = whole[: data.draw(st.integers(0, len(whole)))]
    switches = made(batches, dark)
    assert crossings(switches, side, port, packet) <= (1 if port in EDGES else 0)


@settings(max_examples=200, deadline=None)
@given(modes, modes, st.data(), packets(), sides, st.sampled_from(EDGES))
def test_no_loop_while_settings_change(
    old: str, new: str, data: st.DataObject, packet: Any, side: str, port: int
) -> None:
    """A new pipeline over an old one of another mode makes no loop, at any moment."""
    batches = {}
    for at in ("A", "B"):
        whole = BATCHES[at, new]
        batches[at] = BATCHES[at, old] + whole[: data.draw(st.integers(0, len(whole)))]
    assert crossings(made(batches, set()), side, port, packet) <= 1


@given(modes, sides, packets(), st.sampled_from([*LINES, *EDGES]))
def test_twice_is_once(mode: str, side: str, packet: Any, port: int) -> None:
    """Telling a switch everything again changes neither its rules nor where a packet leaves."""
    whole = b"".join(BATCHES[side, mode])
    once, twice = (FakeSwitch(dict.fromkeys((*LINES, *EDGES), True)) for _ in range(2))
    once.send(whole)
    twice.send(whole + whole)
    key = lambda rule: str(rule)  # noqa: E731
    assert sorted(once.rules, key=key) == sorted(twice.rules, key=key)
    assert once.outcomes(port, packet) == twice.outcomes(port, packet)


@given(modes, sides, packets(), st.sampled_from(LINES))
def test_from_a_line_to_edges_alone(mode: str, side: str, packet: Any, port: int) -> None:
    """What comes out of a line goes to edge ports, or (probes) to the controller; never to a line."""
    switch = made({side: BATCHES[side, mode]}, set())[side]
    (outcome,) = switch.outcomes(port, packet)
    allowed = {CONTROLLER} if packet["eth_type"] == 0x88B5 else set(EDGES)
    assert outcome <= allowed


@given(modes, st.sampled_from(EDGES), packets())
def test_neighbours_stay_at_home(mode: str, port: int, packet: Any) -> None:
    """What is meant for a known host of the same switch never enters a line."""
    switch = made({"A": BATCHES["A", mode]}, set())["A"]
    known = packet["eth_dst"] == MACS["A", 4] or packet.get("ipv4_dst") == HOSTS["A"]
    multicast = int(str(packet["eth_dst"])[:2], 16) & 1
    discovery = packet["eth_type"] == 0x806 or packet.get("icmpv6_type") == 135
    if known and not multicast and not discovery:
        assert all(not outcome & set(LINES) for outcome in switch.outcomes(port, packet))
