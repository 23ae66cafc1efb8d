"""Customers, servers and the household: one namespace each, one device,
one route with its congestion control.
"""

from __future__ import annotations

from collections.abc import Iterator

from steerline_testbed.network import namespaces
from steerline_testbed.network.plan import (
    HOME_GATEWAY,
    INTERNET_PORT,
    IPV4_PREFIX,
    IPV6_PREFIX,
    Node,
    Plan,
    mac_of,
)
from steerline_testbed.network.tools import ip_batch, nft, no_offloads

BRIDGE = "exchange"
UPLINK = "to-b"

_IPV4_SUBNET = f"198.18.0.0/{IPV4_PREFIX}"
_IPV6_SUBNET = f"fd5e:1::/{IPV6_PREFIX}"

_MASQUERADE = """
table ip steerline {
 chain postrouting {
  type nat hook postrouting priority 100; policy accept
  oifname "eth0" masquerade
 }
}
"""


def build_edge(node: Node, plan: Plan) -> None:
    """A host on an edge port; for `core` the station's device, whose switch port is in the same namespace."""
    step = f"build {node.name}"
    port, far = (
        (server_port(node), plan.internet) if node in plan.servers else (node.port, plan.core.namespace)
    )
    device = node.device
    if node is not plan.core and namespaces.has_ipv6():
        namespaces.set_sysctls(node.namespace, _HOST_IPV6)
    peer = f"peer name {port}" + ("" if node is plan.core else f" netns {far}")
    ip_batch(
        node.namespace,
        [
            f"link add {device} address {mac_of(node.ipv4)} type veth {peer}",
            f"link set dev {device} addrgenmode none",
        ]
        if namespaces.has_ipv6()
        else [f"link add {device} address {mac_of(node.ipv4)} type veth {peer}"],
        step,
    )
    if node is plan.core and len(node.addresses) > 1:
        namespaces.set_sysctls(node.namespace, [(f"net/ipv6/conf/{device}/disable_ipv6", "0")])
    no_offloads(node.namespace, [device], step)
    no_offloads(far, [port], step)
    ip_batch(node.namespace, list(_address_commands(node, plan.topology.congestion_control)), step)


def server_port(node: Node) -> str:
    """The server's port on the Internet's bridge."""
    return "to-" + node.name.removesuffix("-server")


def build_internet(plan: Plan) -> None:
    """The bridge through which the servers reach the provider switch, after the servers.

    One port for all, so that their frames wait in one row: Open vSwitch serves its ports in turn and takes up
    to 32 frames from each, and who is served first finds the free place in a full line's queue.
    """
    step = "build the Internet's bridge"
    namespace, core = plan.internet, plan.core.namespace
    ports = [UPLINK, *(server_port(node) for node in plan.servers)]
    ip_batch(
        namespace,
        [
            f"link add {BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            f"link add {UPLINK} type veth peer name {INTERNET_PORT} netns {core}",
            *(f"link set dev {port} master {BRIDGE}" for port in ports),
            *(f"link set dev {device} up" for device in (*ports, BRIDGE)),
        ],
        step,
    )
    no_offloads(namespace, [UPLINK], step)
    no_offloads(core, [INTERNET_PORT], step)


def build_household(plan: Plan) -> None:
    """The hosts behind the home router, their bridge, and the router's masquerade."""
    router = plan.router.namespace
    namespaces.set_sysctls(router, [("net/ipv4/ip_forward", "1")])
    ip_batch(
        router,
        [
            "link add lan type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            f"addr add {HOME_GATEWAY}/24 dev lan",
            "link set dev lan up",
        ],
        "build the home router",
    )
    congctl = plan.topology.congestion_control
    for number, node in enumerate(plan.household, 1):
        step = f"build {node.name}"
        if namespaces.has_ipv6():
            namespaces.set_sysctls(node.namespace, [("net/ipv6/conf/default/disable_ipv6", "1")])
        ip_batch(
            router,
            [
                f"link add lan{number} type veth "
                f"peer name eth0 address {mac_of(node.ipv4)} netns {node.namespace}",
                f"link set dev lan{number} master lan",
                f"link set dev lan{number} up",
            ],
            step,
        )
        no_offloads(router, [f"lan{number}"], step)
        no_offloads(node.namespace, ["eth0"], step)
        ip_batch(
            node.namespace,
            [
                f"addr add {node.ipv4}/24 dev eth0",
                "link set dev eth0 up",
                f"route add default via {HOME_GATEWAY} dev eth0 congctl {congctl}",
            ],
            step,
        )
    nft(router, _MASQUERADE, "masquerade on the home router")


_HOST_IPV6 = [
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
    ("net/ipv6/conf/default/accept_dad", "0"),
]


def _address_commands(node: Node, congctl: str) -> Iterator[str]:
    device = node.device
    yield f"addr add {node.ipv4}/{IPV4_PREFIX} dev {device} noprefixroute"
    if len(node.addresses) > 1:
        yield f"addr add {node.addresses[1]}/{IPV6_PREFIX} dev {device} nodad noprefixroute"
    yield f"link set dev {device} up"
    how = f"dev {device} proto kernel"
    yield f"route replace {_IPV4_SUBNET} {how} scope link src {node.ipv4} congctl {congctl}"
    if len(node.addresses) > 1:
        yield f"route replace {_IPV6_SUBNET} {how} src {node.addresses[1]} congctl {congctl}"
