"""Switches that are wrong are told so, and disturb nobody else."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import Any

import pytest

pytestmark = pytest.mark.network


def test_a_missing_port(network: Any) -> None:
    """A missing port is named with the switch and the ports that exist; other lines work; it heals."""
    network.start(lines=2)
    network.add_host("viewer", "A", 11)
    network.add_host("server", "B", 101)
    controller = network.controller()
    text = controller.text()
    assert "port=a-line3" in text
    assert "port=b-line3" in text
    assert "switch=home/A" in text
    assert "a-line1, a-line2, a-viewer" in text
    network.ping("viewer", "server")
    network.add_line(3)
    controller.wait_log("line=line3", 2)
    network.ping("server", "viewer", version=6)
    network.vsctl("del-port", "a-line1")
    controller.wait_log("port=a-line1")
    time.sleep(1)
    network.ping("viewer", "server")


def test_wrong_version_and_unknown_datapath(home: Any) -> None:
    """Switches of another version, or not configured, are refused with what is allowed; the others go on."""
    home.vsctl("add-br", "C", "--", "set", "bridge", "C", "datapath_type=netdev", "protocols=OpenFlow10",
               "other-config:datapath-id=00000000000000c1")  # fmt: skip
    home.vsctl("add-br", "D", "--", "set", "bridge", "D", "datapath_type=netdev", "protocols=OpenFlow13",
               "other-config:datapath-id=00000000000000d1")  # fmt: skip
    controller = home.controller()
    for bridge in ("C", "D"):
        home.vsctl("set-controller", bridge, "tcp:127.0.0.1:6653")
    controller.wait_log("allowed: 1.3")
    controller.wait_log("datapath id 00000000000000d1 is not configured")
    text = controller.text()
    assert "OpenFlow 1.0" in text
    assert "00000000000000a1 (home/A), 00000000000000b1 (home/B)" in text
    home.ping("viewer", "server")


def test_garbage_on_the_port(home: Any) -> None:
    """Who sends no OpenFlow is cut off with a line in the log; the switches stay connected."""
    controller = home.controller()
    talk = (
        "import socket\n"
        "for data in (b'GET / HTTP/1.1\\r\\n\\r\\n', b'\\x04\\x00\\x00\\x03\\x00\\x00\\x00\\x01',"
        " bytes.fromhex('0400000800000001 0413001000000002 000d000000000000'),"
        " b'\\x04\\x00\\x00\\x08\\x00\\x00\\x00\\x01\\x04\\x06\\x00\\x0a\\x00\\x00\\x00\\x01zz'):\n"
        " s=socket.create_connection(('127.0.0.1',6653))\n s.sendall(data)\n s.settimeout(5)\n"
        " while s.recv(4096): pass"
    )
    done = subprocess.run([*home.inside, "python3", "-c", talk], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert controller.text().count("not OpenFlow 1.3: connection closed") == 4
    assert "switch lost" not in controller.text()
    home.ping("viewer", "server")
    assert controller.end(signal.SIGTERM) == 0
