"""A station and an operator at a running controller with real switches."""

from __future__ import annotations

import json
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.network
STATION = Path(__file__).with_name("fake_station.py")


class Station:
    """A connected station."""

    def __init__(self, home: Any) -> None:
        self._process = subprocess.Popen(
            [*home.inside, sys.executable, str(STATION), "127.0.0.1:50052"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.heard: list[dict[str, Any]] = []
        self._queue: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._queue.put(json.loads(line))

    def say(self, line: str) -> None:
        """One line of the station's language."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def assess(self, session: str, flows: list[dict[str, Any]], critical: bool, **more: Any) -> None:
        """One assessment."""
        buffer_ms = 15_000 if critical else 50_000
        assessment = {
            "session_id": session, "player_state": 2, "buffer_length_ms": buffer_ms, "critical": critical,
            "need_bps": 4_000_000, "play_bps": 2_700_000, "low_ms": 20_000, "high_ms": 35_000,
            "time_to_live_ms": 5_000, "flows": flows,
        }  # fmt: skip
        self.say(json.dumps({"assessment": assessment | more}))

    def wait(self, kind: str, timeout_s: float = 10.0) -> dict[str, Any]:
        """The next message of a kind."""
        deadline = time.monotonic() + timeout_s
        while True:
            message = self._queue.get(timeout=max(0.01, deadline - time.monotonic()))
            self.heard.append(message)
            if kind in message:
                return message[kind]

    def close(self) -> None:
        """Leaves."""
        self._process.kill()
        self._process.wait(10)
        self._thread.join(5)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def station(home: Any) -> Any:
    """A running controller (buffer-threshold), a flow, and a connected station."""
    home.controller(strategy="buffer-threshold")
    made = Station(home)
    yield made
    made.close()


def flow(home: Any, source: int, port: int = 9000) -> dict[str, Any]:
    """A UDP flow as an agent would report it."""
    return {
        "protocol": 17, "client_address": home.address("viewer"), "client_port": source,
        "server_address": home.address("server"), "server_port": port,
    }  # fmt: skip


def send(home: Any, source: int, port: int = 9000) -> None:
    """One datagram of that flow."""
    code = (
        "import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
        f"s.bind(('0.0.0.0',{source}))\ns.sendto(b'x',('{home.address('server')}',{port}))"
    )
    subprocess.run([*home.ns("viewer"), "python3", "-c", code], check=True)


class Done(NamedTuple):
    """What a command gave."""

    returncode: int
    stdout: str
    stderr: str


_MANY = """
import contextlib, io, json, sys
from steerline_controller.__main__ import main
for line in sys.stdin:
    sys.argv = ["steerline-controller", *json.loads(line)]
    out, err, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            status = end.code
    print(json.dumps([status, out.getvalue(), err.getvalue()]), flush=True)
"""


class Operator:
    """Gives commands in the controller's namespace; one process for all, since a start takes long."""

    def __init__(self, home: Any) -> None:
        self._process = subprocess.Popen(
            [*home.inside, sys.executable, "-c", _MANY],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __call__(self, *argv: str) -> Done:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(argv) + "\n")
        self._process.stdin.flush()
        return Done(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """Ends."""
        self._process.communicate(timeout=10)


@pytest.fixture
def operate(home: Any) -> Any:
    """The operator's commands."""
    operator = Operator(home)
    yield operator
    operator.close()


def output_of(home: Any, bridge: str, port: int) -> str:
    """Where a flow's packets go on a switch, and its cookie's kind."""
    (line,) = [x for x in home.dump(bridge).splitlines() if re.search(rf"udp,.*tp_(src|dst)={port}\b", x)]
    found = re.search(r"cookie=0x57ee(\w\w).*actions=output:(\d)", line)
    assert found, line
    return f"{found[1]}:{found[2]}"


def test_from_assessment_to_barrier(home: Any, station: Any) -> None:
    """A critical session's flow becomes steered on both switches, and the station is told when."""
    send(home, 5555)
    time.sleep(0.5)
    station.assess("s1", [flow(home, 5555)], critical=True)
    enforced = station.wait("enforced")
    took_ms = (int(enforced["enforced_monotonic_ns"]) - int(enforced["received_monotonic_ns"])) / 1e6
    assert enforced["session_id"] == "s1"
    assert enforced["moved_flow_count"] >= 1
    assert 0 < took_ms < 1000
    for bridge in ("A", "B"):
        assert output_of(home, bridge, 5555).startswith("81:")
        assert "idle_timeout" not in next(x for x in home.dump(bridge).splitlines() if "=5555" in x)
    lines = {station.wait("line_state")["line"] for _ in range(6)}
    assert lines == {"line1", "line2", "line3"}
    decisions = [json.loads(x) for x in (home.directory / "events.jsonl").read_text().splitlines()]
    assert any(d["session_id"] == "s1" and d["flow"]["client_port"] == 5555 for d in decisions if d["flow"])


def test_operator(home: Any, station: Any, operate: Any) -> None:
    """pin, steer, release, drain and state work; what does not exist is answered with what exists."""
    send(home, 5555)
    station.assess("s1", [flow(home, 5555)], critical=False, time_to_live_ms=60_000)
    time.sleep(0.5)
    assert operate("pin", "s1", "line3").returncode == 0
    assert output_of(home, "A", 5555) == "81:3"
    state = json.loads(operate("state", "--json").stdout)
    (session,) = state["sessions"]
    assert session["pinned"] is True
    assert session["line"] == "line3"
    assert "line3" in operate("state").stdout
    assert operate("release", "s1").returncode == 0
    assert operate("drain", "home", "line3").returncode == 0
    time.sleep(0.5)
    assert not output_of(home, "B", 5555).endswith(":3")
    assert operate("undrain", "home", "line3").returncode == 0
    for argv, part in (
        (("pin", "s9", "line1"), "session 's9' is not known; there are: s1"),
        (
            ("steer", "s1", "line9"),
            "line 'line9' of site 'home' does not exist; there are: line1, line2, line3",
        ),
        (("drain", "elsewhere", "line1"), "site 'elsewhere' does not exist; there are: home"),
        (("release", "x y"), "session_id is 'x y'; allowed: 1 to 64"),
        (("state", "--steering", "127.0.0.1:1"), "no controller answers at 127.0.0.1:1"),
    ):
        done = operate(*argv)
        assert done.returncode == 1
        assert part in done.stderr


def test_a_wrong_assessment_is_answered(home: Any, station: Any) -> None:
    """A wrong value is answered with field, value and range, and the stream goes on."""
    station.assess("s2", [], critical=True, buffer_length_ms=-5)
    answer = station.wait("decision")
    assert "buffer_length_ms is -5; allowed: 0 to" in answer["reason"]
    assert answer["session_id"] == "s2"
    send(home, 5555)
    station.assess("s1", [flow(home, 5555)], critical=True)
    assert station.wait("enforced")["session_id"] == "s1"


def test_a_slow_reader_blocks_nobody(home: Any, station: Any) -> None:
    """A station that stops reading does not delay another one."""
    slow = Station(home)
    try:
        slow.wait("line_state")
        slow.say("stall")
        send(home, 5555)
        for number in range(300):
            station.assess(f"s{number % 3}", [flow(home, 5555)], critical=number % 2 == 0)
        begin = time.monotonic()
        station.assess("s0", [flow(home, 5555)], critical=True)
        station.wait("line_state", 5)
        assert time.monotonic() - begin < 3
    finally:
        slow.close()


def test_sigterm_with_a_station(home: Any) -> None:
    """SIGTERM ends the controller with status 0 within seconds, though a station is connected."""
    controller = home.controller()
    station = Station(home)
    try:
        station.wait("line_state")
        begin = time.monotonic()
        assert controller.end() == 0
        assert time.monotonic() - begin < 5
    finally:
        station.close()
