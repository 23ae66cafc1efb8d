"""One connected switch: its ports, its pipeline, the rules we put on it, what it answers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import structlog

from steerline_contract.flows import FiveTuple, IPAddress
from steerline_controller.core.events import InstalledRule, Role, Side
from steerline_controller.shell.inputs import Channel, PortInfo
from steerline_controller.shell.openflow import cookies, encode, parse, wire
from steerline_controller.shell.openflow.cookies import Kind
from steerline_controller.shell.openflow.pipeline import (
    CHOOSE,
    LinePort,
    Mode,
    SwitchView,
    learnt_rules,
    pipeline_groups,
    pipeline_rules,
)
from steerline_controller.shell.openflow.rules import Group

LOG = structlog.get_logger()

_KIND: dict[Role, Kind] = {"best-effort": Kind.BEST_EFFORT, "steered": Kind.STEERED}
_ROLE: dict[Kind, Role] = {Kind.BEST_EFFORT: "best-effort", Kind.STEERED: "steered"}
MAX_LEARNT = 8192


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """What the settings say about one switch."""

    site: str
    side: Side
    datapath_id: int
    lines: tuple[tuple[str, str], ...]  # name of the line, name of its port here
    edges: tuple[str, ...]
    hosts: tuple[tuple[IPAddress, str], ...]

    @property
    def title(self) -> str:
        """The switch's name for people."""
        return f"{self.site}/{self.side}"


@dataclass(frozen=True, slots=True)
class Readback:
    """What a switch held when it connected."""

    rules: tuple[InstalledRule, ...]


class Switch:
    """Builds messages into a buffer; `flush` sends them in one go, so that one event is one write."""

    def __init__(
        self,
        plan: SwitchPlan,
        channel: Channel,
        ports: Mapping[str, PortInfo],
        mode: Mode,
        idle_timeout_s: int,
    ) -> None:
        self.plan = plan
        self.channel = channel
        self.ports = dict(ports)
        self.learnt: dict[bytes, int] = {}
        self.ready = False
        self._line_index = {name: index for index, (name, _) in enumerate(plan.lines)}
        self._mode: Mode = mode
        self._idle_timeout_s = idle_timeout_s
        self._out = bytearray()
        self._xids = count(1)
        self._generation = int.from_bytes(os.urandom(3), "big")
        self._readback: int | None = None
        self._found: list[parse.FlowEntry] = []
        self._groups: dict[int, Group] = {}
        self._weights: dict[str, int] = {}
        self._discovery_line = ""
        self._missing: set[str] = set()
        self._index_ports()

    # ------------------------------------------------------------ ports

    def _index_ports(self) -> None:
        self.line_ports = tuple(
            LinePort(name, index, self.ports[port].number)
            for index, (name, port) in enumerate(self.plan.lines)
            if port in self.ports
        )
        self.port_of_line = {line.name: line.port for line in self.line_ports}
        self.line_of_port = {line.port: line.name for line in self.line_ports}
        self.edges = tuple(self.ports[name].number for name in self.plan.edges if name in self.ports)
        self._edge_set = set(self.edges)
        wanted = {port for _, port in self.plan.lines} | set(self.plan.edges)
        missing = wanted - set(self.ports)
        for name in sorted(missing - self._missing):
            LOG.error(
                "port missing: the rest works on, and it is used as soon as it exists",
                switch=self.plan.title,
                port=name,
                existing=", ".join(sorted(self.ports)) or "(none)",
            )
        self._missing = missing

    def lines_up(self) -> dict[str, bool]:
        """Carrier of each line's port here; a port that is missing has none."""
        return {name: port in self.ports and self.ports[port].up for name, port in self.plan.lines}

    def is_edge(self, port: int) -> bool:
        """Whether a port number is one of an edge port."""
        return port in self._edge_set

    def port_changed(self, name: str, port: PortInfo | None) -> bool:
        """Takes a port's news. True when it came, went or has a new number: the pipeline is renewed."""
        before = self.ports.get(name)
        if port is None:
            self.ports.pop(name, None)
        else:
            self.ports[name] = port
        if (before.number if before else None) == (port.number if port else None):
            return False
        self._index_ports()
        for mac in [mac for mac, at in self.learnt.items() if not self.is_edge(at)]:
            self.unlearn(mac)
        self._renew_pipeline()
        return True

    # ------------------------------------------------------------ pipeline

    def start(self, weights: Mapping[str, int], discovery_line: str) -> None:
        """Asks what is there, and puts the pipeline beside it. Nothing is taken away yet."""
        self._weights, self._discovery_line = dict(weights), discovery_line
        self._out += wire.set_config(next(self._xids))
        self._readback = next(self._xids)
        self._out += wire.flow_stats_request(self._readback, wire.ALL_TABLES, cookies.OURS, cookies.OURS_MASK)
        self._install()

    def _view(self) -> SwitchView:
        hosts = tuple((ip, self.ports[port].number) for ip, port in self.plan.hosts if port in self.ports)
        return SwitchView(self.plan.side, self._mode, self.line_ports, self.edges, hosts)

    def _install(self) -> None:
        self._put_groups()
        for rule in pipeline_rules(self._view(), self._generation):
            self._out += encode.add_rule(rule, next(self._xids))

    def _renew_pipeline(self) -> None:
        old = cookies.pack(Kind.PIPELINE, self._generation)
        self._generation = (self._generation + 1) % cookies.GENERATIONS
        self._install()
        self._out += wire.delete_by_cookie(next(self._xids), old, cookies.EXACT_MASK)

    def _put_groups(self) -> None:
        for group in pipeline_groups(self._view(), self._weights, self._discovery_line):
            if self._groups.get(group.group_id) != group:
                self._groups[group.group_id] = group
                self._out += encode.put_group(group, self._xids)

    def set_spread(self, weights: Mapping[str, int], discovery_line: str) -> None:
        """Changes the groups where they differ."""
        self._weights, self._discovery_line = dict(weights), discovery_line
        self._put_groups()

    def read_back(self, message: bytes) -> Readback | None:
        """Takes the answer to what `start` asked; what was there, once it is whole."""
        if self._readback is None or int.from_bytes(message[4:8], "big") != self._readback:
            return None
        self._found += parse.flow_entries(message)
        if parse.multipart(message)[1]:
            return None
        self._readback = None
        return Readback(tuple(self._adopt()))

    def _adopt(self) -> Iterator[InstalledRule]:
        for entry in self._found:
            cookie = cookies.unpack(entry.cookie)
            if cookie is None:
                continue
            port = parse.output_port(entry.instructions)
            if cookie.kind is Kind.LEARNT:
                mac = parse.mac_of_match(entry.match)
                if mac is not None and port is not None and self.is_edge(port):
                    self.learn(mac, port)
            elif cookie.kind in _ROLE and port in self.line_of_port:
                flow = parse.flow_of_match(entry.match, self.plan.side)
                if flow is not None:
                    yield InstalledRule(flow, self.line_of_port[port], _ROLE[cookie.kind])

    def delete_strays(self) -> int:
        """Deletes what the read-back found and nobody put again since. The number of cookies deleted."""
        old = {
            entry.cookie
            for entry in self._found
            if (cookie := cookies.unpack(entry.cookie)) is None or cookie.generation != self._generation
        }
        for cookie in sorted(old):
            self._out += wire.delete_by_cookie(next(self._xids), cookie, cookies.EXACT_MASK)
        self._found = []
        return len(old)

    # ------------------------------------------------------------ hosts and flows

    def learn(self, mac: bytes, port: int) -> bool:
        """A host is behind an edge port. False when that was known. When too many are, the oldest goes."""
        if self.learnt.get(mac) == port:
            return False
        if mac not in self.learnt and len(self.learnt) >= MAX_LEARNT:
            self.unlearn(next(iter(self.learnt)))
        self.learnt[mac] = port
        for rule in learnt_rules(mac.hex(":"), port, self._generation):
            self._out += encode.add_rule(rule, next(self._xids))
        return True

    def unlearn(self, mac: bytes) -> None:
        """A host is behind this switch no more."""
        port = self.learnt.pop(mac, None)
        if port is not None:
            for rule in learnt_rules(mac.hex(":"), port, self._generation):
                self._out += encode.delete_rule(rule, next(self._xids))

    def place(self, flow: FiveTuple, line: str, role: Role) -> bool:
        """Puts, moves or renews a flow's rule. False when the line has no port here."""
        port = self.port_of_line.get(line)
        if port is None:
            return False
        best_effort = role == "best-effort"
        self._out += wire.place_flow(
            next(self._xids),
            flow,
            self.plan.side,
            port,
            cookies.pack(_KIND[role], self._generation, self._line_index[line]),
            self._idle_timeout_s if best_effort else 0,
            best_effort,
        )
        return True

    def forget(self, flow: FiveTuple) -> None:
        """Deletes a flow's rule."""
        self._out += wire.forget_flow(next(self._xids), flow, self.plan.side)

    # ------------------------------------------------------------ the rest

    def packet_out(self, in_port: int, port: int, data: bytes) -> None:
        """Sends a packet out of a port."""
        self._out += wire.packet_out(next(self._xids), in_port, port, data)

    def barrier(self) -> int:
        """Asks to be told when all before it is done. The transaction id of the answer."""
        xid = next(self._xids)
        self._out += wire.barrier(xid)
        return xid

    def ask_counters(self) -> None:
        """Asks for the counters of our flows and of all ports."""
        self._out += wire.flow_stats_request(
            next(self._xids), CHOOSE, cookies.PER_FLOW, cookies.PER_FLOW_MASK
        )
        self._out += wire.port_stats_request(next(self._xids))

    @property
    def pending(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._out)

    def flush(self) -> None:
        """Sends all that waits."""
        if self._out:
            self.channel.send(bytes(self._out))
            self._out = bytearray()
