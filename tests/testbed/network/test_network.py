"""A real network: what passes over it, and that it refuses to be measured when it is wrong."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from dataclasses import replace

import pytest
from cryptography import x509

from steerline_testbed.network import Network, TestbedError, WrongNetworkError
from steerline_testbed.network.check import forwarding
from steerline_testbed.network.namespaces import inside
from steerline_testbed.network.switches import DATAPATH_IDS

pytestmark = pytest.mark.network


def forward(network: Network, line: str) -> None:
    """Static rules: every address by its port, over one line."""
    for switch in DATAPATH_IDS:
        rules = (
            "\n".join(forwarding(network.plan, switch, network.switches.numbers, network.line(line))) + "\n"
        )
        network.switches.ofctl("add-flows", switch, "-", stdin=rules)


def unforward(network: Network) -> None:
    """No rules."""
    for switch in DATAPATH_IDS:
        network.switches.ofctl("del-flows", switch)


def source_seen(network: Network, customer: str, server: str, family: int = 0) -> str:
    """The address from which a server sees a customer's TCP connection come."""
    address = network.nodes[server].addresses[family]
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    with inside(
        network.nodes[server].namespace, lambda: socket.create_server((address, 0), family=kind)
    ) as listener:
        listener.settimeout(3)
        port = listener.getsockname()[1]
        with inside(
            network.nodes[customer].namespace, lambda: socket.create_connection((address, port), timeout=3)
        ):
            connection, peer = listener.accept()
            connection.close()
            return str(peer[0])


def test_the_network_is_what_was_asked_for(network: Network) -> None:
    """The self-assertion passes, in less than 6 s, with every line and every host in its report."""
    report = network.check().as_dict()
    assert report["passed"] and report["closed_paths"]
    assert report["duration_s"] < 6
    for line in report["lines"].values():
        assert abs(line["down_bps"] / 10e6 - 1) < 0.02
        assert abs(line["up_bps"] / 10e6 - 1) < 0.02
        assert line["rtt_ms"] < 2
    assert set(report["congestion_control"]) == set(network.nodes) - {"home-router"}


def test_households_come_from_their_routers_address(network: Network) -> None:
    """A host behind NAT is seen with the household's address, others with their own, over IPv4 and IPv6."""
    forward(network, "line2")
    try:
        assert source_seen(network, "home1", "video-server") == "198.18.2.1"
        assert source_seen(network, "viewer1", "video-server") == "198.18.1.11"
        assert source_seen(network, "viewer1", "video-server", family=1) == "fd5e:1::18:1:11"
        assert source_seen(network, "core", "download-server") == "198.18.3.1"
    finally:
        unforward(network)


def test_counters_follow_the_line_that_carries(network: Network) -> None:
    """What went over a line came out of it: bytes at its far ends rise, and nothing on the other line."""
    before = network.line_counters()
    forward(network, "line1")
    try:
        assert network.run("viewer1", ["ping", "-c", "5", "-i", "0.01", "198.19.0.1"]).returncode == 0
    finally:
        unforward(network)
    after = network.line_counters()
    for direction in ("down", "up"):
        field = f"{direction}_bytes"
        assert getattr(after["line1"], field) - getattr(before["line1"], field) >= 5 * 98
    assert replace(after["line2"]) == before["line2"]


def test_downloads_are_accounted_for(network: Network) -> None:
    """Fifty TCP downloads fill the lines, and the sums over hosts, switches and lines agree."""
    report = network.load(2)
    assert report.rho > 0.97
    assert abs(report.uncounted) <= report.sent / 1000
    assert report.left_lines == report.entered_lines - report.dropped_by_queues


def test_a_wrong_rate_is_refused(network: Network) -> None:
    """A line whose shaper was changed behind the testbed's back is named, with measured and allowed."""
    change = "tc class change dev to-a classid 1:1 htb rate {} burst 12500 cburst 12500 quantum 1514"
    namespace = network.line("line2").namespace

    def set_rate(rate: str) -> None:
        argv = ["ip", "netns", "exec", namespace, *change.format(rate).split()]
        assert network.run("core", argv).returncode == 0

    set_rate("9500kbit")
    try:
        report = network.measure(attempts=1)
    finally:
        set_rate("10mbit")
    with pytest.raises(WrongNetworkError) as caught:
        report.require()
    told = next(row for row in str(caught.value).splitlines() if "line2 down" in row)
    assert float(told.split()[2]) == pytest.approx(9.5, abs=0.1)
    assert "allowed: 9.800 to 10.200" in told


def test_a_silently_cut_line_keeps_its_carrier(network: Network) -> None:
    """A silent cut lets nothing through while both ports stay up; the check names the line until restored."""
    network.cut_line("line1", "silent")
    try:
        report = network.measure(attempts=1)
        assert network.switches.ofctl("show", "A").count("LINK_DOWN") == 1, "the switch's local port alone"
    finally:
        network.restore_line("line1")
    assert any("line1: nothing comes back" in problem for problem in report.problems)
    assert not any("line2: nothing" in problem for problem in report.problems)
    assert network.measure().passed


def test_a_cut_with_carrier_loss_is_seen_by_both_switches(network: Network) -> None:
    """Both switches see the port go down, and come up when the line is restored."""
    network.cut_line("line2", "carrier")
    try:
        for switch in DATAPATH_IDS:
            assert network.switches.ofctl("show", switch).count("LINK_DOWN") == 2, (
                "the line, and the local port"
            )
    finally:
        network.restore_line("line2")
    for switch in DATAPATH_IDS:
        assert network.switches.ofctl("show", switch).count("LINK_DOWN") == 1
    assert network.measure().passed


def test_another_congestion_control_is_refused(network: Network) -> None:
    """A host whose route was given another congestion control is named."""
    route = "ip route replace 198.18.0.0/15 dev eth0 proto kernel scope link src 198.18.1.11 congctl {}"
    assert network.run("viewer1", route.format("reno").split()).returncode == 0
    try:
        report = network.measure(attempts=1)
    finally:
        network.run("viewer1", route.format("cubic").split())
    # the servers' ends towards this viewer run what the servers' own routes say
    assert [p for p in report.problems if "viewer1" in p and "reno" in p and "cubic" in p]


def test_a_way_round_the_lines_is_refused(network: Network) -> None:
    """A device that the testbed did not make is named: nothing may cross outside the lines."""
    viewer, server = network.nodes["viewer1"].namespace, network.nodes["video-server"].namespace
    assert (
        network.run("viewer1", f"ip link add side type veth peer name side netns {server}".split()).returncode
        == 0
    )
    try:
        report = network.measure(attempts=1)
    finally:
        network.run("viewer1", ["ip", "link", "del", "side"])
    assert {f"{viewer}/side", f"{server}/side"} <= {
        word for problem in report.problems for word in problem.split()
    }


@pytest.mark.parametrize("how", ["sideways", ""])
def test_unknown_cuts_lines_and_hosts_are_named(network: Network, how: str) -> None:
    """A wrong word is answered with the words that are allowed, and cuts nothing."""
    with pytest.raises(TestbedError, match="carrier, silent"):
        network.cut_line("line1", how)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TestbedError, match="line1, line2"):
        network.cut_line("line9")
    with pytest.raises(TestbedError, match="video-server"):
        network.node("fridge")


def test_the_stations_certificate_is_for_its_addresses(network: Network) -> None:
    """The run's own authority vouches for the station's IPv4 and IPv6 address; the key is for root alone."""
    paths = network.certificates
    ssl.create_default_context(cafile=paths.ca).load_cert_chain(paths.certificate, paths.key)
    certificate = x509.load_pem_x509_certificate(paths.certificate.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = names.get_values_for_type(x509.IPAddress)
    assert {ipaddress.ip_address(a) for a in network.nodes["core"].addresses} <= set(addresses)
    assert paths.key.stat().st_mode & 0o77 == 0


def test_a_program_that_hangs_is_named(network: Network) -> None:
    """`run` gives up after its time and says which program, where."""
    with pytest.raises(TestbedError, match=r"sleep in viewer1 did not end within 0\.1 s"):
        network.run("viewer1", ["sleep", "5"], timeout_s=0.1)
