"""One emulated access network, from its namespaces to its services, owned by one run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from steerline_testbed.network import hosts, load, namespaces, registry, services, signals, tools
from steerline_testbed.network import line as leased_line
from steerline_testbed.network.check import check
from steerline_testbed.network.counters import CounterReader, LineCounters
from steerline_testbed.network.errors import LineDownError, TestbedError
from steerline_testbed.network.load import LoadReport
from steerline_testbed.network.plan import Line, Node, Plan, check_run_id, make_plan
from steerline_testbed.network.process import Process, Spawner
from steerline_testbed.network.switches import DATAPATH_IDS, Switches
from steerline_testbed.network.topology import Topology
from steerline_testbed.network.verdict import CheckReport


def _say(message: str) -> None:
    print(message, file=sys.stderr)


class Network:
    """A context manager: what it makes carries the run's id, and leaving it removes exactly that.

    Not safe for use from several threads at once, but for `spawn`, `run` and `line_counters`.
    """

    def __init__(self, plan: Plan, directory: Path, base: Path) -> None:
        """Use `create`."""
        self.plan = plan
        self.directory = directory
        self._base = base
        self._journal = registry.Journal(directory)
        self._spawner = Spawner(directory, self._journal)
        self._counters: CounterReader | None = None
        self._certificates: services.Certificates | None = None
        self._closed = False
        self._controlled = False
        self.switches = Switches(
            plan, directory, lambda argv, log, env: self.spawn("core", argv, log=log, env=env)
        )

    @classmethod
    def create(
        cls,
        topology: Topology,
        run_id: str,
        base_dir: Path = registry.DEFAULT_BASE,
        say: Callable[[str], None] = _say,
    ) -> Network:
        """Build namespaces, lines, hosts and household; no switch yet.

        Cleans the orphans of dead runs first and says so. While the network exists, SIGTERM and SIGHUP end
        this process in order (as SystemExit), so that the tear-down runs.

        Raises MissingRequirementError before anything is made, RunExistsError, BuildError, LineDownError.
        """
        plan = make_plan(topology, check_run_id(run_id))
        tools.require_root()
        tools.require_tools()
        tools.require_kernel(topology.congestion_control, topology.wants_netem, topology.ipv6)
        with registry.locked(base_dir):
            registry.clean_orphans(base_dir, say)
            taken = [name for name in plan.namespaces if namespaces.exists(name)]
            if taken and not (base_dir / run_id).exists():
                raise TestbedError(f"namespace {taken[0]} is there and belongs to no run under {base_dir}")
            directory = registry.claim(base_dir, run_id)
            network = cls(plan, directory, base_dir)
            runner = registry.ProcessId.of(os.getpid())
            assert runner is not None
            network._journal.write(runner=[runner.pid, runner.start_ticks])
            network._journal.write(topology=topology.model_dump(mode="json", by_alias=True))
        network._restore_signals = signals.end_in_order()
        try:
            network._build()
        except BaseException:
            network.close()
            raise
        return network

    _restore_signals: Callable[[], None] = staticmethod(lambda: None)

    def _build(self) -> None:
        plan = self.plan
        for name in plan.namespaces:
            self._journal.write(namespace=name)
            namespaces.make(name)
        core = plan.core.namespace
        namespaces.set_sysctls(core, leased_line.quiet_ipv6())
        for line in plan.lines:
            leased_line.build(line, core)
        namespaces.set_sysctls(plan.internet, leased_line.quiet_ipv6())
        for node in plan.edge:
            hosts.build_edge(node, plan)
        hosts.build_internet(plan)
        hosts.build_household(plan)
        ports = [port for line in plan.lines for port in (line.port_a, line.port_b)]
        ports += [*plan.edge_ports("A"), *plan.edge_ports("B")]
        tools.ip_batch(core, [f"link set dev {port} up" for port in ports], "bring the switch ports up")
        self._counters = CounterReader(plan.lines)
        self._require_lines_up()

    def _require_lines_up(self, timeout_s: float = 3) -> None:
        """LineDownError naming each line whose ends have no carrier."""
        deadline_s = time.monotonic() + timeout_s
        while down := [line for line in self.plan.lines if not self._is_up(line)]:
            if time.monotonic() > deadline_s:
                names = ", ".join(f"{line.name} ({line.port_a} to {line.port_b})" for line in down)
                raise LineDownError(f"no carrier after {timeout_s:g} s on {names}")
            time.sleep(0.02)

    def _is_up(self, line: Line) -> bool:
        argv = ["ip", "-n", self.plan.core.namespace, "-o", "link", "show", "up"]
        shown = tools.call(argv, f"look at {line.name}")
        return all(
            f" {port}@" in shown
            and "LOWER_UP" in next(row for row in shown.splitlines() if f" {port}@" in row)
            for port in (line.port_a, line.port_b)
        )

    # what there is

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.plan.run_id

    @property
    def topology(self) -> Topology:
        """What was asked for."""
        return self.plan.topology

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Hosts by name: core, viewer1 ..., downloader, browser, home-router, home1 ..., video-server,
        download-server.
        """
        return self.plan.nodes

    @property
    def viewers(self) -> tuple[Node, ...]:
        """Where players run: viewer1 ... or, with `nat`, home1 ..."""
        if self.topology.nat:
            return self.plan.household
        return tuple(node for name, node in self.nodes.items() if name.startswith("viewer"))

    def node(self, name: str) -> Node:
        """The host of that name; TestbedError names the hosts there are."""
        if name not in self.nodes:
            raise TestbedError(f"no host is called {name!r}; allowed: {', '.join(self.nodes)}")
        return self.nodes[name]

    def line(self, name: str) -> Line:
        """The line of that name; TestbedError names the lines there are."""
        return self.plan.line(name)

    def line_counters(self) -> dict[str, LineCounters]:
        """What has come out at the far ends of each line until now, and what its queues dropped."""
        return self._reader().read()

    @property
    def certificates(self) -> services.Certificates:
        """The run's authority and the station's certificate (made at first use)."""
        if self._certificates is None:
            self._certificates = services.Certificates(self.directory / "tls", self.plan.core.addresses)
        return self._certificates

    # what can be done

    def spawn(
        self, node: str, argv: Sequence[str], *, log: str, env: Mapping[str, str] | None = None
    ) -> Process:
        """Start a program in a host's network. It ends with the run.

        Output is added to the run's file `log`.
        """
        return self._spawner.spawn(node, self.node(node).namespace, argv, log, env)

    def run(
        self, node: str, argv: Sequence[str], timeout_s: float = 10, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in a host's network to its end; TestbedError when it takes longer than
        `timeout_s`.
        """
        command = ["ip", "netns", "exec", self.node(node).namespace, *argv]
        try:
            return subprocess.run(
                command,
                capture_output=True,
                text=True,
                input=stdin,
                timeout=timeout_s,
                check=False,
                env=tools.tool_env(),
            )
        except subprocess.TimeoutExpired:
            raise TestbedError(f"{argv[0]} in {node} did not end within {timeout_s:g} s") from None

    def start_switches(self) -> None:
        """Start Open vSwitch with both bridges; without rules they pass nothing."""
        self.switches.start()

    def check(self) -> CheckReport:
        """Refuse a wrong network: line rates, delays, closed paths, congestion control.

        After `start_switches`, before `start_controller`; takes about 2 s. Raises WrongNetworkError that
        names each line with what was measured and what is allowed; its `report` has everything.
        """
        report = self.measure()
        report.require()
        return report

    def measure(self, attempts: int = 3) -> CheckReport:
        """As `check`, but a wrong network is told in the report only; `attempts` to find it right."""
        return check(self.plan, self._uncontrolled(), self._reader(), attempts)

    def load(self, duration_s: float, downloads: int = 50) -> LoadReport:
        """Load all lines with TCP downloads under static rules: CPU it costs, and whether the sums agree."""
        switches = self._uncontrolled()
        try:
            for switch in DATAPATH_IDS:
                rules = "\n".join(load.rules(self.plan, switch, switches.numbers)) + "\n"
                switches.ofctl("add-flows", switch, "-", stdin=rules)
            return load.run(self.plan, self._reader(), switches.daemon.pid, downloads, duration_s)
        finally:
            for switch in DATAPATH_IDS:
                switches.ofctl("del-flows", switch)

    def _uncontrolled(self) -> Switches:
        if not self.switches.numbers or self._controlled:
            raise TestbedError("a network is measured after its switches, and before its controller, start")
        return self.switches

    def _reader(self) -> CounterReader:
        assert self._counters is not None
        return self._counters

    def ready(self) -> None:
        """Tell whoever waits for this run (`up --detach`) that all of it is there."""
        self._journal.write(ready=True)

    def controller_settings(self, *, hosts: bool = True, **overrides: Any) -> dict[str, Any]:
        """The controller's settings for this network; `overrides` replace keys at the top."""
        return {**services.controller_settings(self.plan, self.directory, hosts), **overrides}

    def station_settings(self, **overrides: Any) -> dict[str, Any]:
        """The application station's settings for this network; `overrides` replace keys at the top."""
        return {**services.station_settings(self.plan, self.directory, self.certificates), **overrides}

    def start_controller(self, settings: Mapping[str, Any] | None = None) -> Process:
        """Start the controller in `core`, and wait until it listens for switches and for the station."""
        settings = settings or self.controller_settings()
        self._controlled = True
        process = self._start("steerline-controller", "controller", settings)
        for what, address in settings["listen"].items():
            services.wait_listening(process, self.plan.core.namespace, address, f"controller ({what})")
        return process

    def start_station(self, settings: Mapping[str, Any] | None = None) -> Process:
        """Start the application station in `core`, and wait until it takes reports and REST requests."""
        settings = settings or self.station_settings()
        process = self._start("steerline-appstation", "appstation", settings)
        for what, address in settings["listen"].items():
            services.wait_listening(process, self.plan.core.namespace, address, f"station ({what})")
        return process

    def _start(self, command: str, name: str, settings: Mapping[str, Any]) -> Process:
        path = services.write_settings(self.directory / f"{name}.toml", settings)
        return self.spawn(
            "core", [services.executable(command), "run", "--settings", str(path)], log=f"{name}.log"
        )

    def cut_line(self, line: str, how: Literal["carrier", "silent"] = "carrier") -> None:
        """Cut a line: "carrier" as a pulled cable that both switches see,
        "silent" as a fault in the middle.
        """
        leased_line.cut(self.line(line), how)

    def restore_line(self, line: str) -> None:
        """Undo a cut of either kind."""
        leased_line.restore(self.line(line))

    # the end

    def close(self) -> None:
        """Remove everything of the run: processes, namespaces, directory. Signals wait meanwhile.

        Twice is once.
        """
        if self._closed:
            return
        self._closed = True
        with signals.undisturbed():
            self._spawner.close()
            if self._counters is not None:
                self._counters.close()
            self._journal.close()
            with registry.locked(self._base):
                registry.remove(registry.read(self.directory))
            shutil.rmtree(self.directory, ignore_errors=True)
        self._restore_signals()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
