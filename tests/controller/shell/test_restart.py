"""The controller dies, comes back, and nobody notices."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from typing import Any

import pytest

pytestmark = pytest.mark.network

_RECEIVE = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", {port}))
s.settimeout(4)
seen = set()
print(flush=True)
try:
    while True:
        data, peer = s.recvfrom(2000)
        seen.add(int(data[:8]))
        s.sendto(data, peer)
except TimeoutError:
    print(len(seen))
"""

_SEND = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", {source}))
s.connect(("{address}", {port}))
s.settimeout(0)
back = set()
def read():
    try:
        while True:
            back.add(int(s.recv(2000)[:8]))
    except BlockingIOError:
        pass
begin = time.monotonic()
for n in range({count}):
    s.send(b"%08d" % n + bytes(200))
    read()
    time.sleep(max(0, begin + (n + 1) * {gap} - time.monotonic()))
time.sleep(0.5)
read()
print(len(back))
"""


class Echo:
    """Numbered datagrams from viewer to server and back, paced."""

    def __init__(self, home: Any, source: int, count: int, gap_s: float, port: int = 9000) -> None:
        self.count = count
        self._receiver = subprocess.Popen(
            [*home.ns("server"), "python3", "-c", _RECEIVE.format(port=port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._receiver.stdout is not None
        self._receiver.stdout.readline()
        code = _SEND.format(source=source, address=home.address("server"), port=port, count=count, gap=gap_s)
        self._sender = subprocess.Popen(
            [*home.ns("viewer"), "python3", "-c", code], stdout=subprocess.PIPE, text=True
        )

    def lost(self) -> tuple[int, int]:
        """Datagrams lost on the way there, and there and back. Waits for the end."""
        back = int(self._sender.communicate(timeout=60)[0])
        there = int(self._receiver.communicate(timeout=60)[0])
        return self.count - there, self.count - back


def generations(home: Any, bridge: str) -> set[str]:
    """The generations among the rules of a switch."""
    return set(re.findall(r"cookie=0x57ee\w{6}(\w{6})", home.dump(bridge)))


@pytest.mark.parametrize("mode", ["reactive", "reactive-with-fallback"])
def test_killed_and_restarted_under_traffic(home: Any, mode: str) -> None:
    """kill -9 and a restart cost a flow in progress no packet; strays go, and new flows are steered again."""
    dial = mode == "reactive-with-fallback"
    first = home.controller(mode=mode, dial=dial)
    home.ping("viewer", "server")
    echo = Echo(home, source=7000, count=4000, gap_s=0.003)
    time.sleep(2.0)
    before = generations(home, "A")
    # A rule of a controller of long ago, that nobody will want again.
    home.ofctl("add-flow", "A", "table=1,priority=100,cookie=0x57ee800000abcdef,udp,nw_src=1.2.3.4,"
               "nw_dst=4.3.2.1,tp_src=1,tp_dst=2,actions=drop")  # fmt: skip
    first.end(signal.SIGKILL)
    time.sleep(1.0)
    second = home.controller(name="second", mode=mode, dial=dial)
    assert "rules_found" in second.text()
    time.sleep(0.5)
    for bridge in ("A", "B"):
        assert len(generations(home, bridge)) == 1
        assert generations(home, bridge) != before
        assert re.search(r"udp,.*tp_(src|dst)=7000", home.dump(bridge))
    assert "nw_src=1.2.3.4" not in home.dump("A")
    assert echo.lost() == (0, 0)
    fresh = Echo(home, source=7001, count=100, gap_s=0.003, port=9001)
    assert fresh.lost() == (0, 0)
    assert re.search(r"udp,.*tp_src=7001.*actions=output", home.dump("A"))


def test_sigterm_leaves_the_rules(home: Any) -> None:
    """SIGTERM ends the controller with status 0, and flows go on over the rules that stay."""
    controller = home.controller()
    home.ping("viewer", "server")
    assert controller.end(signal.SIGTERM) == 0
    assert "stopping" in controller.text()
    home.ping("viewer", "server")


def test_a_switch_that_restarts_gets_everything_again(home: Any) -> None:
    """A switch that comes back empty carries the pipeline and the placed flows again within seconds."""
    controller = home.controller()
    home.ping("viewer", "server")
    home.ofctl("del-flows", "B")
    home.ofctl("del-groups", "B")
    home.vsctl("del-controller", "B")
    controller.wait_log("switch lost")
    home.connect()
    controller.wait_log("switch ready", 3)
    home.ping("viewer", "server")


def test_connecting_to_switches(home: Any) -> None:
    """Told where a switch listens, the controller has both again within 3 s of listening itself."""
    first = home.controller(dial=True)
    home.ping("viewer", "server")
    first.end(signal.SIGKILL)
    time.sleep(6)
    second = home.controller(name="second", dial=True)
    times = [
        float(minute) * 60 + float(second_)
        for minute, second_ in re.findall(
            r":(\d\d):([\d.]+)Z \[info +\] (?:ready|switch ready)", second.text()
        )
    ]
    assert (times[-1] - times[0]) % 3600 < 3
    home.ping("server", "other", version=6)


def test_a_dead_switch_is_noticed(home: Any) -> None:
    """A switch that stops answering, its connection still open, is given up within seconds."""
    controller = home.controller()
    daemon = int((home.directory / "ovs-vswitchd.pid").read_text())
    os.kill(daemon, signal.SIGSTOP)
    try:
        controller.wait_log("no answer to 3 echo requests", 2, timeout_s=15)
    finally:
        os.kill(daemon, signal.SIGCONT)
    controller.wait_log("switch ready", 4)
    time.sleep(3)  # the lines were silent: four probes must come out before they are used again
    home.ping("viewer", "server")
