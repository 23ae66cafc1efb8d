"""What customers see, on real switches: everything passes, in both modes."""

from __future__ import annotations

import re
import subprocess
import time
from typing import Any

import pytest

pytestmark = pytest.mark.network
MODES = pytest.mark.parametrize("mode", ["reactive", "reactive-with-fallback"])


def tcp(home: Any, source: str, target: str, version: int = 4, size: int = 300_000) -> int:
    """Bytes that a TCP connection carried from target to source."""
    address = home.address(target, version)
    server = subprocess.Popen(
        [*home.ns(target), "python3", "-c",
         "import socket,sys\n"
         f"s=socket.create_server(('{address}',8000),family=socket.AF_INET{'6' if version == 6 else ''})\n"
         f"print(flush=True)\nc,_=s.accept()\nc.sendall(bytes({size}))\nc.close()"],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert server.stdout is not None
    server.stdout.readline()
    done = subprocess.run(
        [*home.ns(source), "python3", "-c",
         "import socket\n"
         f"c=socket.create_connection(('{address}',8000),timeout=10)\nn=0\n"
         "while d:=c.recv(65536): n+=len(d)\nprint(n)"],
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    server.wait(10)
    server.stdout.close()
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@MODES
def test_everything_passes(home: Any, mode: str) -> None:
    """ICMP, TCP and large (fragmented) packets pass in IPv4 and IPv6, in either direction."""
    home.controller(mode=mode)
    for version in (4, 6):
        home.ping("viewer", "server", version=version)
        home.ping("server", "other", version=version)
        home.ping("other", "server", "-s", "4000", version=version)
        assert tcp(home, "viewer", "server", version) == 300_000


def counted(home: Any, bridge: str, pattern: str) -> int:
    """Packets of the rules that a pattern is found in."""
    return sum(
        int(found[1])
        for line in home.dump(bridge).splitlines()
        if re.search(pattern, line) and (found := re.search(r"n_packets=(\d+)", line))
    )


def line_bytes(home: Any) -> int:
    """Bytes that have left A by its lines, probes and discovery among them."""
    return sum(int(home.vsctl("get", "interface", f"a-line{i}", "statistics:tx_bytes")) for i in range(1, 4))


@MODES
def test_neighbours_stay_at_home(home: Any, mode: str) -> None:
    """Traffic between two customers of one switch never crosses a line."""
    home.controller(mode=mode)
    home.ping("viewer", "other")
    before = line_bytes(home)
    assert tcp(home, "viewer", "other") == 300_000
    for version in (4, 6):
        home.ping("other", "viewer", "-s", "4000", version=version)
    assert line_bytes(home) - before < 100_000
    assert "nw_dst=198.18.0.12 actions=output" not in home.dump("A")


def test_configured_hosts_need_no_learning(home: Any) -> None:
    """A configured destination is delivered to its port alone, from the first packet on."""
    settings = home.settings()
    text = settings.read_text()
    for address in ("198.18.0.12", "fd5e:1::c"):
        text += f'[[site.host]]\naddress = "{address}"\nside = "A"\nport = "a-other"\n'
    home.settings = lambda **_: (settings.write_text(text), settings)[1]
    home.controller()
    home.ping("viewer", "other")
    home.ping("server", "other", version=6)
    assert counted(home, "A", "table=2.*nw_dst=198.18.0.12 ") > 0
    assert counted(home, "A", "table=2.*ipv6_dst=fd5e:1::c ") > 0


def test_discovery_needs_no_controller(home: Any) -> None:
    """With the controller gone, addresses are still resolved, also when lines lose carrier."""
    home.controller(mode="reactive-with-fallback").end()
    home.ping("viewer", "server")
    home.ping("viewer", "server", version=6)
    for name in ("a-line1", "b-line2"):
        subprocess.run(["ip", "-n", home.core, "link", "set", name, "down"], check=True)
    for host in ("viewer", "server"):
        subprocess.run([*home.ns(host), "ip", "neigh", "flush", "all"], check=True)
    time.sleep(0.5)
    home.ping("viewer", "server")
    home.ping("server", "other", version=6)


def test_a_customer_cannot_fake_a_probe(home: Any) -> None:
    """Frames of the probes' type that a customer sends reach nobody."""
    home.controller()
    send = (
        "import socket\ns=socket.socket(socket.AF_PACKET,socket.SOCK_RAW)\ns.bind(('eth0',0))\n"
        "s.send(b'\\xff'*6+b'\\2'*6+b'\\x88\\xb5'+bytes(46))"
    )
    for _ in range(5):
        subprocess.run([*home.ns("viewer"), "python3", "-c", send], check=True)
    # The switch brings its rules' counters up to date every half second.
    until = time.monotonic() + 5
    while counted(home, "A", "table=0.*priority=150,dl_type=0x88b5 ") < 5 and time.monotonic() < until:
        time.sleep(0.1)
    assert counted(home, "A", "table=0.*priority=150,dl_type=0x88b5 ") == 5


def test_ports_and_fragments_are_told_apart(home: Any) -> None:
    """Fragments of UDP pass, and do not hide new UDP flows between the same hosts from the controller."""
    home.controller()
    home.ping("viewer", "server")
    receive = (
        "import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.bind(('0.0.0.0',9000))\n"
        "s.settimeout(8)\nprint(flush=True)\n"
        "print(sorted(len(s.recv(9000)) for _ in range(4)))"
    )
    server = subprocess.Popen(
        [*home.ns("server"), "python3", "-c", receive], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    server.stdout.readline()
    send = (
        "import socket,time\n"
        "for size in (4000, 100, 5000, 200):\n"
        " s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
        f" s.sendto(bytes(size),('{home.address('server')}',9000))\n time.sleep(0.3)"
    )
    subprocess.run([*home.ns("viewer"), "python3", "-c", send], check=True)
    out = server.communicate(timeout=15)[0]
    assert out.strip() == "[100, 200, 4000, 5000]"
    assert len(re.findall(r"udp,.*tp_dst=9000", home.dump("A"))) == 2
    assert counted(home, "A", "udp,.*tp_src=0,tp_dst=0 ") >= 4


def test_idle_flows_end(home: Any) -> None:
    """A best-effort flow that rests has its rules expire on both switches, and comes back when it speaks."""
    home.controller(idle_timeout_s=2)
    home.ping("viewer", "server")
    assert "icmp" in home.dump("A")
    time.sleep(4.5)
    for bridge in ("A", "B"):
        assert "icmp,nw_src" not in home.dump(bridge)
    home.ping("server", "viewer")
    assert "icmp,nw_src" in home.dump("B")
