"""The pipeline, the same on A and B. A packet crosses at most one line, whatever part of it is installed:

    table 0  arrival   from a line -> table 2; from an edge port -> table 1; else dropped
    table 1  from an edge: ARP, neighbour discovery, multicast -> edge ports and one line
                           destination on this switch          -> table 2
                           five-tuple                           -> its line
                           else the mode's table-miss
    table 2  deliver: known destination -> its edge port; else all edge ports; never a line

From a line there is no way to another line, and table 2 knows edge ports only: no loops. What
discovery needs works without the controller: a fast-failover group picks the line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from steerline_contract.flows import IPAddress
from steerline_controller.core.events import Side
from steerline_controller.shell.openflow.cookies import Kind, pack
from steerline_controller.shell.openflow.rules import (
    CONTROLLER,
    WHOLE_PACKET,
    Bucket,
    Group,
    GroupType,
    MatchValue,
    Output,
    Rule,
    ToGroup,
)

Mode = Literal["reactive", "reactive-with-fallback"]

ARRIVAL: Final = 0
CHOOSE: Final = 1
DELIVER: Final = 2

EDGES: Final = 1
DISCOVERY: Final = 2
SPREAD: Final = 3

FLOW_PRIORITY: Final = 100
_COPY_LENGTH: Final = 256  # enough for the headers of a flow: Ethernet, a tag, IPv6 with extensions

ETH_ARP: Final = 0x0806
ETH_IPV4: Final = 0x0800
ETH_IPV6: Final = 0x86DD
ETH_PROBE: Final = 0x88B5  # IEEE 802: local experiments
_ICMPV6: Final = 58
_ND_TYPES: Final = range(133, 138)  # router and neighbour solicitation and advertisement, redirect
_MULTICAST: Final = ("01:00:00:00:00:00", "01:00:00:00:00:00")
_BRIDGE_ONLY: Final = ("01:80:c2:00:00:00", "ff:ff:ff:ff:ff:f0")  # IEEE 802.1D: never forwarded


@dataclass(frozen=True, slots=True)
class LinePort:
    """A line's port on this switch. `index` is the line's place in the settings."""

    name: str
    index: int
    port: int


@dataclass(frozen=True, slots=True)
class SwitchView:
    """What the pipeline of one switch depends on: the ports that exist, and who is behind them."""

    side: Side
    mode: Mode
    lines: tuple[LinePort, ...]
    edges: tuple[int, ...]
    hosts: tuple[tuple[IPAddress, int], ...] = ()


def _ip_match(address: IPAddress) -> dict[str, MatchValue]:
    if address.version == 4:
        return {"eth_type": ETH_IPV4, "ipv4_dst": str(address)}
    return {"eth_type": ETH_IPV6, "ipv6_dst": str(address)}


def pipeline_rules(view: SwitchView, generation: int) -> list[Rule]:
    """The rules that do not depend on flows or on what was learnt."""
    cookie = pack(Kind.PIPELINE, generation)
    rules: list[Rule] = []

    def add(
        table: int,
        priority: int,
        match: dict[str, MatchValue],
        *actions: Output | ToGroup,
        goto: int | None = None,
    ) -> None:
        rules.append(Rule(table, priority, match, cookie, actions, goto))

    # Deliver first, then choose, then arrival: nothing is let in before it has somewhere to go.
    add(DELIVER, 0, {}, ToGroup(EDGES))
    for address, port in view.hosts:
        add(DELIVER, 200, _ip_match(address), Output(port))
    for address, _port in view.hosts:
        add(CHOOSE, 300, _ip_match(address), goto=DELIVER)
    add(CHOOSE, 420, {"eth_dst": _BRIDGE_ONLY})
    add(CHOOSE, 350, {"eth_dst": _MULTICAST}, ToGroup(EDGES), ToGroup(DISCOVERY))
    learn = (Output(CONTROLLER, _COPY_LENGTH), ToGroup(EDGES), ToGroup(DISCOVERY))
    add(CHOOSE, 400, {"eth_type": ETH_ARP}, *learn)
    for icmpv6_type in _ND_TYPES:
        nd: dict[str, MatchValue] = {"eth_type": ETH_IPV6, "ip_proto": _ICMPV6, "icmpv6_type": icmpv6_type}
        add(CHOOSE, 400, nd, *learn)
    for eth_type in (ETH_IPV4, ETH_IPV6):
        if view.mode == "reactive":
            add(CHOOSE, 10, {"eth_type": eth_type}, Output(CONTROLLER, WHOLE_PACKET))
        else:
            add(CHOOSE, 10, {"eth_type": eth_type}, Output(CONTROLLER, _COPY_LENGTH), ToGroup(SPREAD))
    # Only what comes out of a line can be a probe: a customer's own is dropped.
    add(ARRIVAL, 150, {"eth_type": ETH_PROBE})
    for line in view.lines:
        probe: dict[str, MatchValue] = {"in_port": line.port, "eth_type": ETH_PROBE}
        add(ARRIVAL, 200, probe, Output(CONTROLLER, _COPY_LENGTH))
        add(ARRIVAL, 100, {"in_port": line.port}, goto=DELIVER)
    for port in view.edges:
        add(ARRIVAL, 100, {"in_port": port}, goto=CHOOSE)
    return rules


def learnt_rules(mac: str, port: int, generation: int) -> list[Rule]:
    """The rules of a host seen behind an edge port."""
    cookie = pack(Kind.LEARNT, generation)
    match: dict[str, MatchValue] = {"eth_dst": mac}
    return [
        Rule(DELIVER, 100, match, cookie, (Output(port),)),
        Rule(CHOOSE, 300, match, cookie, goto=DELIVER),
    ]


def pipeline_groups(view: SwitchView, weights: dict[str, int], discovery_line: str) -> list[Group]:
    """The groups: all edge ports, the line for discovery (others behind it), the spread over lines.

    `weights`: by line, 0 leaves it out; a line that is not named has weight 1. Lines without carrier
    are left out by the switch itself.
    """
    first = sorted(view.lines, key=lambda line: (line.name != discovery_line, line.index))
    spread = [(line, weights.get(line.name, 1)) for line in view.lines]
    return [
        Group(EDGES, GroupType.ALL, tuple(Bucket(port) for port in view.edges)),
        Group(DISCOVERY, GroupType.FAST_FAILOVER, tuple(Bucket(line.port, watch=True) for line in first)),
        Group(
            SPREAD,
            GroupType.SELECT,
            tuple(Bucket(line.port, weight, watch=True) for line, weight in spread if weight > 0),
        ),
    ]
