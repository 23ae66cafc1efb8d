"""The network's commands: up, down, list, clean, cut, restore, assert."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from steerline_testbed.network import guide, registry, sidebyside
from steerline_testbed.network import line as leased_line
from steerline_testbed.network.errors import TestbedError
from steerline_testbed.network.network import Network
from steerline_testbed.network.plan import Plan, check_run_id, make_plan
from steerline_testbed.network.process import Process
from steerline_testbed.network.tools import require_root
from steerline_testbed.network.topology import Topology

COMMANDS = ("up", "down", "list", "clean", "cut", "restore", "assert")
"""What `register` adds."""

Command = Callable[[argparse.Namespace], int]


def register(subparsers: Any) -> None:
    """Add the commands. Each sets `command`, which takes the options and returns the exit status."""
    up = _add(
        subparsers, "up", up_command, "build a network with its services, and keep it to look around in"
    )
    up.add_argument("run", nargs="?", default="up", metavar="RUN", help="its id (default: %(default)s)")
    add_topology_options(up)
    up.add_argument("--strategy", default="buffer-threshold", help="the controller's (default: %(default)s)")
    up.add_argument("--mode", default="reactive", help="reactive (default) or reactive-with-fallback")
    up.add_argument("--best-effort", default="round-robin", help="round-robin (default) or single")
    up.add_argument("--bare", action="store_true", help="switches only: no controller, no station, no rules")
    up.add_argument("--no-check", action="store_true", help="do not measure the network first (about 2 s)")
    up.add_argument("--detach", action="store_true", help="return once it is up; end it with `down RUN`")

    down = _add(subparsers, "down", down_command, "end a run, and remove everything it made")
    down.add_argument("run", metavar="RUN", help="its id, as `list` shows it")

    _add(subparsers, "list", list_command, "the runs on this machine, live and dead")
    _add(subparsers, "clean", clean_command, "remove what dead runs have left; live ones stay untouched")

    cut = _add(subparsers, "cut", cut_command, "cut a line of a live run")
    cut.add_argument("--how", default="carrier", help="carrier (both switches see it; default) or silent")
    restore = _add(subparsers, "restore", restore_command, "undo a cut")
    for parser in (cut, restore):
        parser.add_argument("run", metavar="RUN")
        parser.add_argument("line", metavar="LINE", help="as in line3")

    check = _add(
        subparsers, "assert", assert_command, "build a network, measure whether it is right, remove it"
    )
    add_topology_options(check)
    check.add_argument("--run-id", default="assert", help="names the namespaces (default: %(default)s)")
    check.add_argument("--json", action="store_true", help="everything that was measured, as JSON")
    add = check.add_argument
    add("--side-by-side", type=int, default=1, metavar="N", help="N networks, measured at the same time")
    add("--load", type=float, default=0, metavar="S",
        help="then 50 TCP downloads for S seconds: the CPU they cost, packets nobody counted")  # fmt: skip
    add("--hold", action="store_true", help=argparse.SUPPRESS)


def _add(subparsers: Any, name: str, command: Command, help_text: str) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(name, help=help_text, description=help_text)
    parser.set_defaults(command=command)
    return parser


def add_topology_options(parser: argparse.ArgumentParser) -> None:
    """What the network looks like: a file, or options for equal lines."""
    add = parser.add_argument
    add("--topology", type=Path, metavar="FILE", help="a topology in TOML; replaces the options below")
    add("--lines", type=int, default=5, help="leased lines, all alike (default: %(default)s)")
    add("--line-mbps", type=float, default=10, metavar="X", help="rate of each (default: %(default)s)")
    add("--delay-ms", type=float, default=0, help="delay of each, one way (wants netem; default: 0)")
    add("--loss", type=float, default=0, metavar="P", help="share lost at random, 0 to 0.5 (default: 0)")
    add("--queue-packets", type=int, default=100, help="room before each line (default: %(default)s)")
    add("--viewers", type=int, default=1, help="customers who watch (default: %(default)s)")
    add("--nat", action="store_true", help="the viewers are behind the household's router")
    add("--station-side", default="A", help="the switch the station sits on: A (default) or B")
    add("--congestion-control", default="cubic", help="TCP's, on every host (default: %(default)s)")
    add("--no-ipv6", action="store_true", help="IPv4 only")


def topology_of(options: argparse.Namespace) -> Topology:
    """The topology that the options ask for; TestbedError names what is wrong."""
    if options.topology is not None:
        return Topology.load(options.topology)
    if not math.isfinite(options.line_mbps):
        raise TestbedError(f"--line-mbps is {options.line_mbps}; allowed: 0.1 to 1000")
    return Topology.default(
        lines=options.lines,
        line_bps=round(options.line_mbps * 1e6),
        viewers=options.viewers,
        delay_ms=options.delay_ms,
        loss=options.loss,
        queue_packets=options.queue_packets,
        nat=options.nat,
        station_side=options.station_side,
        congestion_control=options.congestion_control,
        ipv6=not options.no_ipv6,
    )


def up_command(options: argparse.Namespace) -> int:
    """Build, print how to look around, and wait for Ctrl-C or `down`."""
    topology = topology_of(options)
    plan = make_plan(topology, check_run_id(options.run))
    require_root()
    if options.detach:
        return _detach(options, plan)
    with Network.create(topology, options.run) as network:
        network.start_switches()
        if not options.no_check:
            network.check()
        services: list[Process] = []
        if not options.bare:
            wanted = {"strategy": options.strategy, "mode": options.mode, "best_effort": options.best_effort}
            services.append(network.start_controller(network.controller_settings(**wanted)))
            services.append(network.start_station(network.station_settings()))
        network.ready()
        print(guide.text(plan, network.directory), flush=True)
        print("\nCtrl-C removes all of it.", flush=True)
        try:
            _watch(services)
        except KeyboardInterrupt:
            print(f"\nremoving run {options.run}", file=sys.stderr)
    return 0


def _watch(services: list[Process]) -> None:
    """Wait for ever, and say it when a service ends."""
    while True:
        for process in [process for process in services if not process.running]:
            services.remove(process)
            name = Path(process.argv[0]).name
            print(f"{name} has ended with code {process.returncode}; {process.log} ends:", file=sys.stderr)
            print(process.tail(), file=sys.stderr, flush=True)
        time.sleep(0.5)


def _detach(options: argparse.Namespace, plan: Plan) -> int:
    """The same command again, in the background; return once it is ready, or hand on why it is not."""
    argv = [word for word in sys.argv[1:] if word != "--detach"]
    directory = registry.DEFAULT_BASE / options.run
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            [sys.executable, "-m", "steerline_testbed", *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=said,
            start_new_session=True,
        )
        try:
            while child.poll() is None:
                record = registry.read(directory)
                if record.runner and record.runner.pid == child.pid and record.facts.get("ready"):
                    _hand_on(said)
                    print(guide.text(plan, directory))
                    return 0
                time.sleep(0.05)
        except BaseException:
            child.terminate()
            child.wait()
            raise
        _hand_on(output)
        _hand_on(said)
        return child.returncode or 1


def _hand_on(text: IO[bytes]) -> None:
    """What the one in the background has said: which dead runs it cleaned, or why it failed."""
    text.seek(0)
    sys.stderr.write(text.read().decode(errors="replace"))


def down_command(options: argparse.Namespace) -> int:
    """End a run of `up`, `run` or `demo`."""
    require_root()
    registry.end_run(registry.DEFAULT_BASE, check_run_id(options.run))
    print(f"run {options.run} is removed")
    return 0


def list_command(options: argparse.Namespace) -> int:
    """One line per run."""
    del options
    found = registry.runs(registry.DEFAULT_BASE)
    if not found:
        print("no runs")
    for record in found:
        pid = record.runner.pid if record.runner else "?"
        state = "live" if record.alive else "dead"
        shape = (
            guide.shape(Topology.parse(record.facts["topology"], "registry"))
            if record.facts
            else "being built"
        )
        print(f"{record.run_id:20} {state}  runner pid {pid}  {shape}  {record.directory}")
    return 0


def clean_command(options: argparse.Namespace) -> int:
    """Clean the orphans of dead runs."""
    del options
    require_root()
    with registry.locked(registry.DEFAULT_BASE):
        if not registry.clean_orphans(registry.DEFAULT_BASE, print):
            print("nothing to clean")
    return 0


def cut_command(options: argparse.Namespace) -> int:
    """Cut a line of somebody's live run."""
    plan = _plan_of(options.run)
    plan.topology.line(options.line)
    leased_line.cut(plan.line(options.line), options.how)
    return 0


def restore_command(options: argparse.Namespace) -> int:
    """Undo a cut in somebody's live run."""
    plan = _plan_of(options.run)
    leased_line.restore(plan.line(options.line))
    return 0


def _plan_of(run_id: str) -> Plan:
    require_root()
    record = registry.read(registry.DEFAULT_BASE / check_run_id(run_id))
    if not record.alive or "topology" not in record.facts:
        live = [run.run_id for run in registry.runs(registry.DEFAULT_BASE) if run.alive]
        raise TestbedError(f"no live run is called {run_id!r}; live: {', '.join(live) or 'none'}")
    return make_plan(Topology.parse(record.facts["topology"], "registry"), run_id)


def assert_command(options: argparse.Namespace) -> int:
    """Exit status 0 when every network was right, 1 else."""
    topology = topology_of(options)
    require_root()
    if options.side_by_side > 1:
        return sidebyside.run(options.side_by_side, options.run_id, sys.argv[1:])
    with Network.create(topology, options.run_id) as network:
        network.start_switches()
        if options.hold:
            print("built", flush=True)
            sys.stdin.readline()
        report = network.measure()
        cost = network.load(options.load) if options.load and report.passed else None
    if options.json:
        print(json.dumps(report.as_dict() | ({"load": cost.as_dict()} if cost else {}), indent=1))
    else:
        print(guide.verdict(report))
        if cost:
            print(cost.text())
    return 0 if report.passed else 1
