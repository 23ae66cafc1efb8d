"""Whose flows are these? A client may speak only for flows of its own address."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from steerline_appstation.core.policy import IPNetwork
from steerline_contract.errors import ForeignAddressError
from steerline_contract.flows import FiveTuple, IPAddress

# Addresses that exist behind many home routers at once: RFC 1918, RFC 6598 (CGN), RFC 4193 (ULA).
# Not `is_private`: that also counts benchmarking (198.18/15), loopback and documentation addresses.
TRANSLATED_NETWORKS: Final[tuple[IPNetwork, ...]] = (
    ipaddress.IPv4Network("10.0.0.0/8"),
    ipaddress.IPv4Network("172.16.0.0/12"),
    ipaddress.IPv4Network("192.168.0.0/16"),
    ipaddress.IPv4Network("100.64.0.0/10"),
    ipaddress.IPv6Network("fc00::/7"),
)


@dataclass(frozen=True, slots=True)
class Attributed:
    """Flows as the network sees them.

    `translated`: at least one address was rewritten on the way, ports may be too.
    `left_out`: flows of the other address family behind a translator, which cannot be attributed.
    """

    flows: tuple[FiveTuple, ...] = ()
    translated: bool = False
    left_out: int = 0


def attribute(
    flows: Sequence[FiveTuple], peer: IPAddress, customer_networks: Sequence[IPNetwork]
) -> Attributed:
    """Gives each flow the client address that the network sees.

    The peer's own address stays; an unspecified one is filled with the peer's; a private one that
    is no customer's is replaced by the peer's. Any other raises ForeignAddressError.
    """
    found: dict[FiveTuple, None] = {}
    translated = False
    left_out = 0
    for flow in flows:
        if flow.client == peer:
            found[flow] = None
            continue
        hidden = not flow.client.is_unspecified
        if hidden and not _behind_translation(flow.client, customer_networks):
            raise ForeignAddressError(
                "flows.client_address",
                str(flow.client),
                f"your own address as the station sees it ({peer}), a private one, or none",
            )
        if flow.server.version != peer.version:
            left_out += 1
            continue
        found[replace(flow, client=peer)] = None
        translated = translated or hidden
    return Attributed(tuple(found), translated, left_out)


def _behind_translation(address: IPAddress, customer_networks: Sequence[IPNetwork]) -> bool:
    if any(address in network for network in customer_networks):
        return False
    return any(address in network for network in TRANSLATED_NETWORKS)
