"""What must not happen ends the process with its trace; what can happen to a disk does not."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steerline_contract.flows import TCP, FiveTuple, parse_address
from steerline_contract.steering import Decision, DecisionKind, NetworkAdvice
from steerline_controller.shell.record import Record

_SETTINGS = """
[listen]
openflow = "127.0.0.1:0"
steering = "127.0.0.1:0"
[[site]]
name = "home"
[site.A]
datapath_id = "00000000000000a1"
[site.B]
datapath_id = "00000000000000b1"
[[site.line]]
name = "line1"
port_A = "a-line1"
port_B = "b-line1"
capacity_bps = 10_000_000
"""


def python(code: str, *argv: str) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end."""
    return subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, timeout=40)


def test_an_error_while_deciding(tmp_path: Path) -> None:
    """An exception in the engine ends the process with its trace, not with 0."""
    path = tmp_path / "controller.toml"
    path.write_text(_SETTINGS)
    code = """
import sys
from pathlib import Path
from steerline_controller.shell import service, settings
class Broken:
    def handle(self, event, now): raise ZeroDivisionError("on purpose")
    def line_states(self): return []
    def snapshot(self): raise NotImplementedError
service.run(settings.load(Path(sys.argv[1])), Broken())
"""
    done = python(code, str(path))
    assert done.returncode not in (0, None)
    assert "ZeroDivisionError: on purpose" in done.stderr


@pytest.mark.parametrize(
    "fault",
    [
        "hub.spawn(lambda: 1 / 0)",
        "adapter.SteerlineApp.port_status(adapter.SteerlineApp(), None)",
    ],
)
def test_an_error_in_os_ken(fault: str) -> None:
    """An exception in an os-ken thread or handler of ours ends the process with its trace."""
    code = f"""
import time
from os_ken.lib import hub
from steerline_controller.shell.inputs import Inbox
from steerline_controller.shell.openflow import adapter
adapter.OpenFlowServer(("127.0.0.1", 0), Inbox(), lambda _: "").start()
{fault}
time.sleep(20)
"""
    begin = time.monotonic()
    done = python(code)
    assert done.returncode == 70
    assert "Traceback" in done.stderr
    assert time.monotonic() - begin < 15


def decision(number: int) -> Decision:
    """A decision with a flow."""
    ends = parse_address("198.18.1.11"), parse_address("198.19.0.1")
    return Decision(
        DecisionKind.STEER, 1000.0 + number, "home", "why", "round-robin", "s1",
        FiveTuple(TCP, ends[0], 1000, ends[1], 80), "line1", "line2",
    )  # fmt: skip


def test_the_record(tmp_path: Path) -> None:
    """Each announcement is one JSON line with all its parts; a restart adds to the file."""
    path = tmp_path / "events.jsonl"
    for number in range(2):
        record = Record(path)
        record.put(5.0, decision(number))
        record.put(6.0, NetworkAdvice("s1", 2_000_000, "full"))
        record.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["type"] for line in lines] == ["decision", "advice"] * 2
    assert lines[2]["time_s"] == 1001.0
    assert lines[0]["flow"] == {
        "protocol": 6, "client_address": "198.18.1.11", "client_port": 1000,
        "server_address": "198.19.0.1", "server_port": 80,
    }  # fmt: skip
    assert lines[1] == {
        "type": "advice", "time_s": 6.0, "session_id": "s1", "sustainable_bps": 2_000_000, "reason": "full",
    }  # fmt: skip


def test_a_full_disk(capsys: pytest.CaptureFixture[str]) -> None:
    """A disk without room costs lines of the record; that is said once, and nothing else happens."""
    record = Record(Path("/dev/full"))
    for number in range(100):
        record.put(5.0, decision(number))
    record.close()
    assert capsys.readouterr().out.count("the record loses lines; steering goes on") == 1


@pytest.mark.network
def test_room_comes_back(tmp_path: Path) -> None:
    """A disk that fills and is freed again leaves whole lines behind, but for the one that did not fit."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)], check=True)
    try:
        record = Record(disk / "events.jsonl")
        for number in range(200):
            record.put(5.0, decision(number))
        time.sleep(0.5)
        full = (disk / "events.jsonl").stat().st_size
        assert full >= 12_000
        subprocess.run(["mount", "-o", "remount,size=64k", str(disk)], check=True)
        for number in range(200, 210):
            record.put(5.0, decision(number))
        record.close()
        lines = (disk / "events.jsonl").read_text().splitlines()
        whole = []
        for line in lines:
            try:
                whole.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        assert len(lines) - len(whole) <= 1
        assert [line["time_s"] for line in whole[-10:]] == [1000.0 + n for n in range(200, 210)]
    finally:
        subprocess.run(["umount", str(disk)], check=True)
