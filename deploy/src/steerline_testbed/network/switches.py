"""Open vSwitch for one run: its own database and switch daemon, in the core namespace and the run's
directory.

The userspace datapath (`netdev`) works where the kernel has no openvswitch module. Both daemons are plain
children, so that they end with the run and several runs never meet.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from steerline_testbed.network import buffers
from steerline_testbed.network.errors import BuildError
from steerline_testbed.network.plan import Plan
from steerline_testbed.network.process import Process
from steerline_testbed.network.tools import call, nft

DATAPATH_IDS = {"A": "00000000000000a1", "B": "00000000000000b1"}
OPENFLOW_ADDRESS = "127.0.0.1:6653"
_NICE = -10
_SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")

Spawn = Callable[[Sequence[str], str, dict[str, str]], Process]


class Switches:
    """The two switches of a run."""

    def __init__(self, plan: Plan, directory: Path, spawn: Spawn) -> None:
        self._plan = plan
        self._spawn = spawn
        self.directory = directory / "ovs"
        self._processes: list[Process] = []
        self.numbers: dict[str, int] = {}
        """OpenFlow port numbers by name, known once started."""

    @property
    def env(self) -> dict[str, str]:
        """Environment that points Open vSwitch's tools to this run's switches."""
        where = str(self.directory)
        return {"OVS_RUNDIR": where, "OVS_LOGDIR": where, "OVS_DBDIR": where, "OVS_SYSCONFDIR": where}

    @property
    def database(self) -> str:
        """Where ovs-vsctl finds the database."""
        return f"unix:{self.directory}/db.sock"

    def management(self, switch: str) -> str:
        """Where ovs-ofctl finds a switch."""
        return f"unix:{self.directory}/{switch}.mgmt"

    def start(self) -> None:
        """Start database and switch daemon, make the bridges with their ports,
        and see that each port is there.
        """
        step = "start the switches"
        self.directory.mkdir()
        self._keep_kernel_out()
        database = self.directory / "conf.db"
        call(["ovsdb-tool", "create", str(database), str(_SCHEMA)], step, env=self.env)
        log = ["-vconsole:off", "-vsyslog:off", "-vfile:info", "--no-chdir"]
        server = self._spawn(
            ["ovsdb-server", str(database), f"--remote=p{self.database}", "--pidfile", "--log-file", *log],
            "ovsdb-server.log",
            self.env,
        )
        self._processes.append(server)
        self._wait_for(self.directory / "db.sock", server)
        call(["ovs-vsctl", f"--db={self.database}", "--no-wait", "init"], step, env=self.env)
        daemon = self._spawn(
            ["ovs-vswitchd", self.database, "--pidfile", "--log-file", "--disable-system", *log],
            "ovs-vswitchd.log",
            self.env,
        )
        self._processes.append(daemon)
        # A switch does not wait for its users: beside busy players and servers on few cores its share
        # of time must not depend on theirs. Where that is not allowed, the self-assertion still judges.
        # (Not in real time: it would then wake for each frame, and three runs would fill two cores.)
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, daemon.pid, _NICE)
        argv = ["ovs-vsctl", "--timeout=15", f"--db={self.database}", *self._transaction()]
        try:
            call(argv, step, env=self.env)
        except BuildError as error:
            daemon.require_running()
            raise BuildError(f"{error}; the switch daemon's log ends:\n{daemon.tail()}") from None
        self._require_ports()
        buffers.widen(daemon.pid)

    @property
    def daemon(self) -> Process:
        """The switch daemon."""
        return self._processes[-1]

    def ofctl(self, command: str, switch: str, *arguments: str, stdin: str | None = None) -> str:
        """An ovs-ofctl command on one of the two switches, in OpenFlow 1.3; its output."""
        argv = ["ovs-ofctl", "-O", "OpenFlow13", command, self.management(switch), *arguments]
        return call(argv, f"{command} on {switch}", stdin=stdin, env=self.env)

    def require_running(self) -> None:
        """ServiceError when a daemon has ended."""
        for process in self._processes:
            process.require_running()

    def ports(self, switch: str) -> list[str]:
        """Names of a switch's ports, lines first."""
        plan = self._plan
        lines = [line.port_a if switch == "A" else line.port_b for line in plan.lines]
        return lines + plan.edge_ports("A" if switch == "A" else "B")

    def _transaction(self) -> list[str]:
        words: list[str] = []
        for switch, datapath_id in DATAPATH_IDS.items():
            words += ["--", "add-br", switch, "--", "set", "bridge", switch, "datapath_type=netdev"]
            words += ["fail_mode=secure", "protocols=OpenFlow13", "stp_enable=false"]
            words += [f"other_config:datapath-id={datapath_id}", "other_config:disable-in-band=true"]
            for number, port in enumerate(self.ports(switch), 1):
                words += ["--", "add-port", switch, port]
                words += ["--", "set", "interface", port, f"ofport_request={number}"]
        return words

    def _keep_kernel_out(self) -> None:
        """Frames on switch ports belong to the switch: the kernel's own stack must neither answer ARP nor
        accept.
        """
        devices = ", ".join(f'"{port}"' for switch in DATAPATH_IDS for port in self.ports(switch))
        rules = (
            "table netdev steerline {\n chain ports {\n"
            f"  type filter hook ingress devices = {{ {devices} }} priority 0; policy drop\n }}\n}}\n"
        )
        nft(self._plan.core.namespace, rules, "keep the kernel out of the switch ports")

    def _wait_for(self, path: Path, process: Process, timeout_s: float = 10) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not path.exists():
            process.require_running()
            if time.monotonic() > deadline_s:
                raise BuildError(f"{process.argv[0]} has not made {path} within {timeout_s:g} s")
            time.sleep(0.01)

    def _require_ports(self) -> None:
        argv = ["ovs-vsctl", f"--db={self.database}", "--format=csv", "--no-headings"]
        answer = call(
            [*argv, "--columns=name,ofport", "list", "interface"], "look at the ports", env=self.env
        )
        numbers = dict(row.split(",", 1) for row in answer.splitlines())
        wanted = [port for switch in DATAPATH_IDS for port in self.ports(switch)]
        wrong = [port for port in wanted if not numbers.get(port, "").isdigit()]
        if wrong:
            raise BuildError(f"the switches could not take their ports {', '.join(wrong)}")
        self.numbers = {port: int(numbers[port]) for port in wanted}
