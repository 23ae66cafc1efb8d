"""Names and addresses of a run are a pure function of topology and id."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerline_testbed.network import TestbedError, Topology
from steerline_testbed.network.plan import make_plan

topologies = st.builds(
    Topology.default,
    lines=st.integers(1, 32),
    viewers=st.integers(1, 64),
    nat=st.booleans(),
    station_side=st.sampled_from("AB"),
    ipv6=st.booleans(),
)
run_ids = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", fullmatch=True)


@given(topologies, run_ids)
def test_names_are_unique_and_fit(topology: Topology, run_id: str) -> None:
    """Namespaces, ports and addresses are all different; a port's name fits Linux's 15 characters."""
    plan = make_plan(topology, run_id)
    ports = [port for line in plan.lines for port in (line.port_a, line.port_b)]
    ports += [*plan.edge_ports("A"), *plan.edge_ports("B")]
    addresses = [address for node in plan.nodes.values() for address in node.addresses]
    for names in (plan.namespaces, ports, addresses):
        assert len(set(names)) == len(names)
    assert all(len(port) <= 15 for port in ports)
    assert all(name.startswith(f"sl-{run_id}-") for name in plan.namespaces)


@given(topologies)
def test_every_host_is_on_one_side(topology: Topology) -> None:
    """Customers are on A, servers on B, the station where it was asked for; every edge port is a switch's."""
    plan = make_plan(topology, "x")
    assert plan.core.side == topology.station_side
    assert {node.side for node in plan.edge if node.name.endswith("-server")} == {"B"}
    assert set(plan.edge_ports("A")) | set(plan.edge_ports("B")) == {node.port for node in plan.edge}


@given(topologies)
def test_servers_share_one_port(topology: Topology) -> None:
    """Frames of all servers wait in one row before the provider switch."""
    plan = make_plan(topology, "x")
    assert [node.name for node in plan.servers] == ["video-server", "download-server"]
    assert {node.port for node in plan.servers} == {"b-internet"}
    assert plan.internet in plan.namespaces


@given(topologies)
def test_viewers_are_where_they_were_asked_for(topology: Topology) -> None:
    """With NAT viewers live behind the router, else on ports of their own; one household is always there."""
    plan = make_plan(topology, "x")
    viewers = [name for name in plan.nodes if name.startswith("viewer")]
    assert len(viewers) == (0 if topology.nat else topology.viewers)
    assert len(plan.household) == (topology.viewers if topology.nat else 1)
    assert all(node.addresses[0].startswith("192.168.1.") for node in plan.household)


@pytest.mark.parametrize("run_id", ["", "-a", "a-", "A", "a.b", "a/b", "../x", "a b", "x" * 33, "ü"])
def test_ids_that_cannot_stand_in_names_are_refused(run_id: str) -> None:
    """A run id is 1 to 32 lower-case letters, digits and inner hyphens."""
    with pytest.raises(TestbedError, match="allowed"):
        make_plan(Topology.default(), run_id)
