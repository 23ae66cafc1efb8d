"""A run removes exactly what it made, however it ends, and touches nothing of others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steerline_testbed.network import (
    BuildError,
    Line,
    LineDownError,
    Network,
    RunExistsError,
    TestbedError,
    Topology,
    line,
    registry,
)

pytestmark = pytest.mark.network

SMALL = Topology.default(lines=1)

RUNNER = """
import sys, time
from pathlib import Path
from steerline_testbed.network import Network, Topology
with Network.create(Topology.default(lines=1), sys.argv[1], Path(sys.argv[2])) as network:
    network.start_switches()
    # a program that leaves its group and its parent, as daemons do
    network.spawn("viewer1", ["sh", "-c", "setsid sleep 1000 & setsid sleep 1000"], log="sleep.log")
    time.sleep(0.5)
    print("ready", flush=True)
    time.sleep(1000)
"""


def everything() -> dict[str, set[str]]:
    """Namespaces and links of this machine, whoever's."""
    shown = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
    netns = Path("/run/netns")
    return {
        "namespaces": {path.name for path in netns.iterdir()} if netns.is_dir() else set(),
        "links": {row.split()[0] for row in shown.splitlines()},
    }


def of_run(run_id: str) -> list[str]:
    """Namespaces that carry the run's id."""
    return [name for name in everything()["namespaces"] if name.startswith(f"sl-{run_id}-")]


def processes_of(run_id: str) -> list[int]:
    """Processes with the run's id in their command line or environment, zombies aside, this one aside."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "cmdline").read_bytes()
                where = (entry / "ns/net").stat().st_ino
            except OSError:
                continue
            namespaces = {(Path("/run/netns") / name).stat().st_ino for name in of_run(run_id)}
            if run_id.encode() in text or where in namespaces:
                found.append(int(entry.name))
    return found


def runner(run_id: str, base: Path) -> subprocess.Popen[str]:
    """A runner in a process of its own, once its network is there."""
    process = subprocess.Popen(
        # whoever runs the tests in the background may have them ignored
        ["env", "--default-signal=INT,HUP,TERM", sys.executable, "-c", RUNNER, run_id, str(base)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()
    return process


def test_leaving_removes_exactly_what_was_made(run_id: str, base: Path) -> None:
    """No namespace, link, process or file of the run is left, and all that was there before still is."""
    before = everything()
    with Network.create(SMALL, run_id, base) as network:
        network.start_switches()
        network.spawn("viewer1", ["sh", "-c", "trap '' TERM; setsid sleep 1000 & sleep 1000"], log="x.log")
        assert len(of_run(run_id)) == len(network.plan.namespaces)
        assert everything()["links"] == before["links"], "all devices are inside the run's own namespaces"
    assert of_run(run_id) == []
    assert processes_of(run_id) == []
    assert not network.directory.exists()
    others = {name for name in before["namespaces"] if name.startswith("sl-t")}
    assert others <= everything()["namespaces"]
    network.close()


def test_an_exception_removes_everything(run_id: str, base: Path) -> None:
    """The run's own failure comes out, after the tear-down."""
    with pytest.raises(ZeroDivisionError), Network.create(SMALL, run_id, base):
        raise ZeroDivisionError
    assert of_run(run_id) == []
    assert not (base / run_id).exists()


def test_a_failing_build_removes_what_it_had_made(
    run_id: str, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a step of the build fails, its error comes out and nothing of the steps before is left."""

    def fail(*arguments: object) -> None:
        raise BuildError("build line1: no such luck")

    monkeypatch.setattr(line, "build", fail)
    with pytest.raises(BuildError, match="no such luck"):
        Network.create(SMALL, run_id, base)
    assert of_run(run_id) == []
    assert not (base / run_id).exists()


def test_a_line_that_does_not_come_up_is_named(
    run_id: str, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line without carrier ends the build with its name and ports, and everything is removed."""
    build = line.build

    def build_dead(what: Line, core: str) -> None:
        build(what, core)
        if what.name == "line2":
            line.cut(what, "carrier")

    monkeypatch.setattr(line, "build", build_dead)
    with pytest.raises(LineDownError, match=r"line2 \(a-line2 to b-line2\)"):
        Network.create(Topology.default(lines=3), run_id, base)
    assert of_run(run_id) == []


def test_a_full_disk_ends_a_run_in_order(run_id: str, base: Path) -> None:
    """When the run's directory is full, starting a program says so, and the run still ends whole."""
    base.mkdir(exist_ok=True)
    small = base / "full"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)], check=True)
    try:
        with Network.create(SMALL, run_id, small) as network:
            with pytest.raises(OSError, match=r"No space left"):
                (network.directory / "filler").write_bytes(b"x" * 200_000)
            with pytest.raises(BuildError, match=r"No space left"):
                for _ in range(1000):
                    network.spawn("core", ["sleep", "1000"], log="x.log")
        assert of_run(run_id) == []
        assert processes_of(run_id) == []
        assert [path.name for path in small.iterdir()] == [".lock"]
    finally:
        subprocess.run(["umount", str(small)], check=True)
        small.rmdir()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, (1, 130, -signal.SIGINT)), (signal.SIGTERM, (143,)), (signal.SIGHUP, (129,))],
)
def test_signals_end_a_run_in_order(
    number: signal.Signals, code: tuple[int, ...], run_id: str, base: Path
) -> None:
    """SIGINT, SIGTERM and SIGHUP unwind the runner: everything is removed before it ends."""
    process = runner(run_id, base)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode in code
    assert of_run(run_id) == []
    assert processes_of(run_id) == []
    assert not (base / run_id).exists()


def test_a_killed_runners_orphans_are_cleaned_beside_a_live_run(run_id: str, base: Path) -> None:
    """After kill -9 the next start removes what was left, says so, and a live run does not notice."""
    with Network.create(SMALL, f"{run_id}-live", base) as live:
        live.start_switches()
        kept = live.spawn("viewer1", ["sleep", "1000"], log="sleep.log")
        dead = runner(f"{run_id}-dead", base)
        dead.kill()
        dead.communicate()
        assert of_run(f"{run_id}-dead"), "kill -9 leaves the namespaces"
        said: list[str] = []
        with Network.create(SMALL, f"{run_id}-next", base, say=said.append):
            assert of_run(f"{run_id}-dead") == []
            assert processes_of(f"{run_id}-dead") == []
            assert not (base / f"{run_id}-dead").exists()
            assert len(said) == 1
            assert f"{run_id}-dead" in said[0]
            assert "namespaces" in said[0]
        assert kept.running
        live.switches.require_running()
        assert live.measure().passed


def test_children_die_with_a_killed_runner(run_id: str, base: Path) -> None:
    """The switches end at once when their runner is killed, without waiting for a next start."""
    process = runner(run_id, base)
    children = registry.read(base / run_id).children
    process.kill()
    process.communicate()
    deadline_s = time.monotonic() + 3
    while any(child.alive for child in children) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert not any(child.alive for child in children)
    with registry.locked(base):
        assert registry.clean_orphans(base, [].append) == [run_id]
    assert processes_of(run_id) == []


def test_a_second_run_of_the_same_id_is_refused(run_id: str, base: Path) -> None:
    """A live run's id is refused with its runner's pid, whatever the directory; the first run lives on."""
    with Network.create(SMALL, run_id, base) as first:
        with pytest.raises(RunExistsError, match=rf"{run_id}.*{os.getpid()}"):
            Network.create(SMALL, run_id, base)
        elsewhere = Path(f"{base}-b")
        with pytest.raises(TestbedError, match=f"sl-{run_id}-core"):
            Network.create(SMALL, run_id, elsewhere)
        (elsewhere / ".lock").unlink()
        elsewhere.rmdir()
        assert len(of_run(run_id)) == len(first.plan.namespaces)


def test_two_runs_side_by_side_never_meet(run_id: str, base: Path) -> None:
    """Two networks with the same addresses pass their own assertion, and one's end leaves the other whole."""
    with Network.create(SMALL, f"{run_id}-a", base) as one:
        with Network.create(SMALL, f"{run_id}-b", base) as two:
            for network in (one, two):
                network.start_switches()
            before = one.line_counters()
            assert two.measure().passed
            assert one.line_counters() == before
        assert one.measure().passed


def test_children_may_be_started_from_any_thread(run_id: str, base: Path) -> None:
    """A child lives on when the thread that asked for it ends."""
    from threading import Thread

    with Network.create(SMALL, run_id, base) as network:
        started: list[bool] = []
        spawn = Thread(target=lambda: started.append(network.spawn("core", ["sleep", "9"], log="l").running))
        spawn.start()
        spawn.join()
        time.sleep(0.2)
        child = network._spawner.processes[0]  # pyright: ignore[reportPrivateUsage]
        assert child.running
        assert child.stop() == -signal.SIGTERM
