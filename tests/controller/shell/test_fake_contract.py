"""One contract for the shipped fake and Open vSwitch: the same bytes, the same packets, the same ports."""

from __future__ import annotations

import ipaddress
import re
import subprocess
import sys
from typing import Any

import pytest

from steerline_contract.flows import TCP, UDP, FiveTuple
from steerline_controller.shell.inputs import PortInfo
from steerline_controller.shell.openflow.fake import FakeSwitch
from steerline_controller.shell.openflow.rules import CONTROLLER
from steerline_controller.shell.switch import Switch, SwitchPlan

pytestmark = pytest.mark.network

A4, B4, C4 = (ipaddress.ip_address(f"198.18.0.{n}") for n in (11, 101, 12))
A6, B6 = (ipaddress.ip_address(f"fd5e:1::{n}") for n in ("b", "65"))
FLOWS = {
    FiveTuple(TCP, A4, 1000, B4, 80): "line1",
    FiveTuple(UDP, A4, 0, B4, 0): "line2",
    FiveTuple(1, A4, 0, B4, 0): "line3",
    FiveTuple(TCP, A6, 1000, B6, 80): "line3",
    FiveTuple(58, A6, 0, B6, 0): "line2",
}
V4 = {"eth_type": 0x800, "ipv4_src": str(A4), "ipv4_dst": str(B4)}
V6 = {"eth_type": 0x86DD, "ipv6_src": str(A6), "ipv6_dst": str(B6)}
PACKETS: list[dict[str, int | str]] = [
    V4 | {"ip_proto": TCP, "tcp_src": 1000, "tcp_dst": 80},
    V4 | {"ip_proto": TCP, "tcp_src": 1001, "tcp_dst": 80},
    V4 | {"ip_proto": UDP, "udp_src": 5, "udp_dst": 6},
    V4 | {"ip_proto": UDP, "udp_src": 0, "udp_dst": 0},
    V4 | {"ip_proto": 1},
    V4 | {"ip_proto": 47},
    V4 | {"ip_proto": 1, "ipv4_dst": str(C4)},
    V4 | {"ip_proto": 1, "eth_dst": "02:00:00:00:00:04"},
    V4 | {"ip_proto": UDP, "udp_src": 5, "udp_dst": 6, "eth_dst": "ff:ff:ff:ff:ff:ff"},
    V6 | {"ip_proto": TCP, "tcp_src": 1000, "tcp_dst": 80},
    V6 | {"ip_proto": 58, "icmpv6_type": 128},
    V6 | {"ip_proto": 58, "icmpv6_type": 135, "eth_dst": "33:33:ff:00:00:65"},
    V6 | {"ip_proto": UDP, "udp_src": 5, "udp_dst": 6},
    {"eth_type": 0x806, "eth_dst": "ff:ff:ff:ff:ff:ff"},
    {"eth_type": 0x806},
    {"eth_type": 0x88B5},
    {"eth_type": 0x9000},
    {"eth_type": 0x9000, "eth_dst": "01:80:c2:00:00:00"},
]
_NAMES = {
    "eth_type": "dl_type",
    "eth_dst": "dl_dst",
    "ipv4_src": "nw_src",
    "ipv4_dst": "nw_dst",
    "ip_proto": "nw_proto",
}

_SEND = """
import socket, sys, struct
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
s.sendall(struct.pack("!BBHI", 4, 0, 8, 1) + sys.stdin.buffer.read() + struct.pack("!BBHI", 4, 20, 8, 0x7EEE))
buffer = b""
while True:
    buffer += s.recv(65536)
    while len(buffer) >= 8:
        kind, length, xid = struct.unpack_from("!xBHI", buffer)
        if len(buffer) < length: break
        if kind == 1 and buffer[8:12] != bytes((0, 6, 0, 0)): sys.exit(buffer[:length].hex())
        if (kind, xid) == (21, 0x7EEE): sys.exit(0)
        buffer = buffer[length:]
"""


class _Tape:
    peer = "tape"

    def __init__(self) -> None:
        self.data = b""

    def send(self, data: bytes, /) -> None:
        self.data += data

    def close(self) -> None:
        pass


def told(ports: dict[str, PortInfo], mode: Any) -> bytes:
    """What switch A is told."""
    tape = _Tape()
    lines = tuple((f"line{i}", f"a-line{i}") for i in (1, 2, 3))
    plan = SwitchPlan("home", "A", 0xA1, lines, ("a-viewer", "a-other"), ((C4, "a-other"),))
    switch = Switch(plan, tape, ports, mode, 30)
    switch.start({"line1": 0, "line2": 1, "line3": 1}, "line2")
    switch.learn(bytes.fromhex("020000000004"), ports["a-viewer"].number)
    for flow, line in FLOWS.items():
        switch.place(flow, line, "steered")
    switch.flush()
    return tape.data


def trace(home: Any, in_port: str, packet: dict[str, int | str]) -> set[str]:
    """The ports that Open vSwitch would send a packet out of; "select" where a select group chooses.

    That choice comes after a hash that the datapath makes, which a trace does not have.
    """
    text = ",".join(
        [f"in_port={in_port}", *(f"{_NAMES.get(k, k)}={v:#x}" if k == "eth_type" else
                                 f"{_NAMES.get(k, k)}={v}" for k, v in packet.items())]
    )  # fmt: skip
    out = home.appctl("ofproto/trace", "--names", "A", text)
    ports: set[str] = set()
    for actions in re.findall(r"^Datapath actions: (.*)$", out, re.M):
        if "controller(" in actions:
            ports.add("controller")
        if "hash(" in actions:
            ports.add("select")
        ports |= set(re.findall(r"\b(a-\w+)\b", actions))
    return ports


@pytest.mark.parametrize("mode", ["reactive", "reactive-with-fallback"])
def test_the_fake_and_open_vswitch_agree(home: Any, mode: str) -> None:
    """Every kind of packet from every kind of port leaves both by the same ports."""
    names = ["a-line1", "a-line2", "a-line3", "a-viewer", "a-other"]
    numbers = {name: int(home.vsctl("get", "interface", name, "ofport")) for name in names}
    data = told({name: PortInfo(number, True) for name, number in numbers.items()}, mode)
    done = subprocess.run(
        [sys.executable, "-c", _SEND, f"{home.directory}/A.mgmt"], input=data, capture_output=True, timeout=20
    )
    assert done.returncode == 0, done.stderr
    fake = FakeSwitch(dict.fromkeys(numbers.values(), True))
    fake.send(data)
    by_number = {number: name for name, number in numbers.items()} | {CONTROLLER: "controller"}
    for dark in (None, "a-line2"):
        if dark:
            subprocess.run(["ip", "-n", home.core, "link", "set", dark, "down"], check=True)
            fake.ports_up[numbers[dark]] = False
        for in_port in names:
            if in_port == dark:
                continue
            for packet in PACKETS:
                real = trace(home, in_port, packet)
                faked = sorted(
                    (
                        {by_number[n] for n in outcome}
                        for outcome in fake.outcomes(
                            numbers[in_port], {"eth_dst": "02:00:00:00:00:77"} | packet
                        )
                    ),
                    key=sorted,
                )
                if "select" in real:
                    live = {"a-line3"} if dark else {"a-line2", "a-line3"}
                    assert faked == [real - {"select"} | {line} for line in sorted(live)]
                else:
                    assert faked == [real], (in_port, packet)
