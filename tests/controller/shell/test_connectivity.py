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
