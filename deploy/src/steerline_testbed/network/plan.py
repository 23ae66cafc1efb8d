"""From a topology and a run's id to names and addresses: who exists, where, and on which port. Pure.

Addresses, all on one subnet, for no router stands between A and B:

    198.18.1.11 ...   viewers            198.18.2.1   the household's public side
    198.18.1.101      downloads          198.18.3.1   the application station
    198.18.1.102      browses            198.19.0.1, .2   video server, download server

and the same under fd5e:1::/64, with the last three octets as they are written (198.18.1.11 is
fd5e:1::18:1:11).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from steerline_testbed.network.errors import TestbedError
from steerline_testbed.network.topology import LineSpec, Topology

Side = Literal["A", "B"]

IPV4_PREFIX = 15
IPV6_PREFIX = 64
HOME_NETWORK = "192.168.1.0/24"
HOME_GATEWAY = "192.168.1.1"
STATION_IPV4 = "198.18.3.1"
STATION_DEVICE = "station0"
VIDEO_SERVER_IPV4 = "198.19.0.1"
DOWNLOAD_SERVER_IPV4 = "198.19.0.2"
HOUSEHOLD_IPV4 = "198.18.2.1"
INTERNET = "internet"
INTERNET_PORT = "b-internet"

_RUN_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")


@dataclass(frozen=True)
class Node:
    """A host of the run.

    `side` and `port` say where its traffic enters the switches; hosts of the household share their router's.
    `addresses` has IPv4 first, then IPv6 where it has one.
    """

    name: str
    namespace: str
    addresses: tuple[str, ...]
    side: Side
    port: str
    behind_nat: bool = False

    @property
    def ipv4(self) -> str:
        """Its IPv4 address."""
        return self.addresses[0]

    @property
    def device(self) -> str:
        """The name of its network device, inside its namespace."""
        return STATION_DEVICE if self.name == "core" else "eth0"


@dataclass(frozen=True)
class Line:
    """A leased line of the run: its namespace and the switch ports at its two ends."""

    spec: LineSpec
    namespace: str
    port_a: str
    port_b: str

    @property
    def name(self) -> str:
        """The line's name."""
        return self.spec.name


@dataclass(frozen=True)
class Plan:
    """Everything that a run will create."""

    run_id: str
    topology: Topology
    nodes: Mapping[str, Node]
    lines: tuple[Line, ...]

    @property
    def core(self) -> Node:
        """Where switches, controller and station live; its addresses are the station's."""
        return self.nodes["core"]

    @property
    def router(self) -> Node:
        """The household's home router."""
        return self.nodes["home-router"]

    @property
    def servers(self) -> tuple[Node, ...]:
        """Hosts beyond the provider switch, which reach it through one port."""
        return tuple(node for node in self.nodes.values() if node.port == INTERNET_PORT)

    @property
    def internet(self) -> str:
        """The namespace of the bridge that joins the servers to the provider switch."""
        return f"sl-{self.run_id}-{INTERNET}"

    @property
    def household(self) -> tuple[Node, ...]:
        """Hosts behind the home router."""
        return tuple(node for node in self.nodes.values() if node.behind_nat)

    @property
    def edge(self) -> tuple[Node, ...]:
        """Hosts with an edge port of their own, the station's included."""
        return tuple(node for node in self.nodes.values() if not node.behind_nat)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Every namespace of the run."""
        hosts = (node.namespace for node in self.nodes.values())
        return (*hosts, self.internet, *(line.namespace for line in self.lines))

    def line(self, name: str) -> Line:
        """The line of that name; TestbedError names the lines there are."""
        self.topology.line(name)
        return next(line for line in self.lines if line.name == name)

    def edge_ports(self, side: Side) -> list[str]:
        """Edge ports of one switch."""
        return list(dict.fromkeys(node.port for node in self.edge if node.side == side))


def check_run_id(run_id: str) -> str:
    """The id itself; TestbedError when it cannot stand in names of namespaces and files."""
    if not _RUN_ID.fullmatch(run_id):
        raise TestbedError(
            f"run id is {run_id!r}; "
            "allowed: 1 to 32 lower-case letters, digits and inner hyphens, as in demo-1"
        )
    return run_id


def ipv6_of(ipv4: str) -> str:
    """198.18.1.11 -> fd5e:1::18:1:11: the last three octets as written."""
    return "fd5e:1::" + ":".join(ipv4.split(".")[1:])


def mac_of(ipv4: str) -> str:
    """A locally administered address that shows the IPv4 address it belongs to."""
    return "02:00:" + ":".join(f"{int(part):02x}" for part in ipv4.split("."))


def make_plan(topology: Topology, run_id: str) -> Plan:
    """Names and addresses of everything in the run."""
    prefix = f"sl-{check_run_id(run_id)}"
    nodes: dict[str, Node] = {}

    def add(name: str, ipv4: str, side: Side, port: str, behind_nat: bool = False) -> None:
        addresses = (ipv4, ipv6_of(ipv4)) if topology.ipv6 and not behind_nat else (ipv4,)
        nodes[name] = Node(name, f"{prefix}-{name}", addresses, side, port, behind_nat)

    station_side = topology.station_side
    add("core", STATION_IPV4, station_side, f"{station_side.lower()}-station")
    if not topology.nat:
        for number in range(1, topology.viewers + 1):
            add(f"viewer{number}", f"198.18.1.{10 + number}", "A", f"a-viewer{number}")
    add("downloader", "198.18.1.101", "A", "a-downloader")
    add("browser", "198.18.1.102", "A", "a-browser")
    add("home-router", HOUSEHOLD_IPV4, "A", "a-home")
    for number in range(1, (topology.viewers if topology.nat else 1) + 1):
        add(f"home{number}", f"192.168.1.{10 + number}", "A", "a-home", behind_nat=True)
    add("video-server", VIDEO_SERVER_IPV4, "B", INTERNET_PORT)
    add("download-server", DOWNLOAD_SERVER_IPV4, "B", INTERNET_PORT)
    lines = tuple(
        Line(spec, f"{prefix}-{spec.name}", f"a-{spec.name}", f"b-{spec.name}") for spec in topology.lines
    )
    return Plan(run_id, topology, MappingProxyType(nodes), lines)
