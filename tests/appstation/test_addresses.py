"""Whose flows a client may speak for."""

from __future__ import annotations

import ipaddress

import pytest

from steerline_appstation.core.addresses import Attributed, attribute
from steerline_contract.errors import ForeignAddressError
from steerline_contract.flows import FiveTuple, parse_address

CUSTOMERS = (ipaddress.ip_network("198.18.0.0/16"), ipaddress.ip_network("10.9.0.0/16"))


def flow(client: str, port: int = 40_000) -> FiveTuple:
    server = "198.19.0.1" if "." in client else "fd5e:1::80"
    return FiveTuple(6, parse_address(client), port, parse_address(server), 80)


def attributed(client: str, peer: str) -> Attributed:
    return attribute([flow(client)], parse_address(peer), CUSTOMERS)


def test_own_address_is_exact() -> None:
    """A tuple with the peer's own address stays as it is."""
    assert attributed("198.18.1.11", "198.18.1.11") == Attributed((flow("198.18.1.11"),), False)


@pytest.mark.parametrize(("client", "peer"), [("0.0.0.0", "198.18.1.11"), ("::", "fd5e:1::11")])
def test_unknown_address_is_filled(client: str, peer: str) -> None:
    """An unspecified address becomes the peer's, and that is no translation."""
    assert attributed(client, peer) == Attributed((flow(peer),), False)


@pytest.mark.parametrize(
    ("client", "peer"),
    [
        ("192.168.1.7", "198.18.2.1"),
        ("172.31.255.254", "198.18.2.1"),
        ("10.0.0.1", "198.18.2.1"),
        ("100.64.0.9", "203.0.113.5"),
        ("fd00::7", "2001:db8::1"),
    ],
)
def test_private_address_is_translated(client: str, peer: str) -> None:
    """A household's own address becomes the public one that the network sees."""
    assert attributed(client, peer) == Attributed((flow(peer),), True)


@pytest.mark.parametrize(
    ("client", "peer"),
    [
        ("198.18.1.12", "198.18.1.11"),  # another customer
        ("10.9.0.5", "10.9.0.6"),  # private, but a customer's
        ("8.8.8.8", "198.18.1.11"),
        ("172.32.0.1", "198.18.1.11"),  # just outside RFC 1918
        ("100.128.0.1", "198.18.1.11"),  # just outside RFC 6598
        ("127.0.0.1", "198.18.1.11"),
        ("169.254.1.1", "198.18.1.11"),
        ("2001:db8::2", "2001:db8::1"),
        ("fe80::1", "2001:db8::1"),
        ("2001:db8::2", "198.18.1.11"),
    ],
)
def test_foreign_address_is_refused(client: str, peer: str) -> None:
    """Nobody speaks for another's address, and the error says whose it may speak for."""
    with pytest.raises(ForeignAddressError, match=f"flows.client_address is '{client}'.*{peer}"):
        attributed(client, peer)


@pytest.mark.parametrize("client", ["::", "fd00::7"])
def test_other_family_is_left_out(client: str) -> None:
    """A flow that cannot be given the peer's address is left out and counted."""
    assert attributed(client, "198.18.2.1") == Attributed((), False, 1)


def test_flows_that_become_one_are_one() -> None:
    """The same tuple told with and without its address is one flow."""
    peer = parse_address("198.18.1.11")
    found = attribute([flow("0.0.0.0"), flow("198.18.1.11")], peer, CUSTOMERS)
    assert found.flows == (flow("198.18.1.11"),)
