"""Real Open vSwitch, real hosts: two switches in a namespace, each host in one of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"


def wait_for(condition: Callable[[], object], what: str, timeout_s: float = 15.0) -> None:
    """Waits until a condition holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.05)


def sh(*argv: str, env: dict[str, str] | None = None, check: bool = True) -> str:
    """Runs a command to its end; its output."""
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}: {done.stdout}{done.stderr}")
    return done.stdout


class Controller:
    """The real command, in the switches' namespace."""

    def __init__(self, net: Network, settings: Path, name: str) -> None:
        self.log = net.directory / f"{name}.log"
        self._net = net
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *net.inside,
                    sys.executable,
                    "-m",
                    "steerline_controller",
                    "run",
                    "--settings",
                    str(settings),
                ],
                stdout=log,
                stderr=log,
            )

    def text(self) -> str:
        """All it has said."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.log.read_text())

    def wait_log(self, part: str, count: int = 1, timeout_s: float = 20.0) -> None:
        """Waits until it has said something that often."""

        def said() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(f"the controller ended:\n{self.text()}")
            return self.text().count(part) >= count

        try:
            wait_for(said, part, timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.text()}") from None

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ends it; its exit status."""
        if self.process.poll() is None:
            # `ip netns exec` becomes the command itself: the pid is the controller's.
            self.process.send_signal(number)
        return self.process.wait(10)


class Network:
    """Switches A and B, `lines` plain cables between them, hosts at their edge ports."""

    def __init__(self, directory: Path, lines: int = 3) -> None:
        self.run_id = f"sl{os.getpid():x}{time.monotonic_ns() & 0xFFFF:x}"
        self.core = f"{self.run_id}-core"
        self.inside = ["ip", "netns", "exec", self.core]
        self.directory = directory
        self.lines = lines
        self.hosts: dict[str, tuple[str, str]] = {}  # name: (side, last byte of its addresses)
        self._spaces: list[str] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._controllers: list[Controller] = []
        self.env = {
            **os.environ,
            "OVS_RUNDIR": str(directory),
            "OVS_LOGDIR": str(directory),
            "OVS_DBDIR": str(directory),
            "OVS_SYSCONFDIR": str(directory),
        }

    # ------------------------------------------------------------ building

    def space(self, name: str) -> None:
        """A namespace."""
        sh("ip", "netns", "add", name)
        self._spaces.append(name)
        sh("ip", "-n", name, "link", "set", "lo", "up")
        sh("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.accept_dad=0")
        sh("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0")
        sh("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.router_solicitations=0")

    def start(self, protocols: str = "OpenFlow13", lines: int | None = None) -> None:
        """Makes the switches, with their lines."""
        self.space(self.core)
        sh(*self.inside, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        sh(*self.inside, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        sh("ovsdb-tool", "create", str(self.directory / "conf.db"), SCHEMA, env=self.env)
        db = f"unix:{self.directory}/db.sock"
        quiet = ["-vconsole:off", "-vsyslog:off", "--no-chdir", "--pidfile", "--log-file"]
        self._spawn(["ovsdb-server", str(self.directory / "conf.db"), f"--remote=p{db}", *quiet])
        wait_for((self.directory / "db.sock").exists, "database")
        self.vsctl("--no-wait", "init")
        self._spawn(["ovs-vswitchd", db, "--disable-system", *quiet])
        for side, dpid in (("A", "a1"), ("B", "b1")):
            self.vsctl("add-br", side, "--", "set", "bridge", side, "datapath_type=netdev",
                       "fail_mode=secure", f"protocols={protocols}",
                       f"other-config:datapath-id=00000000000000{dpid}",
                       "other-config:disable-in-band=true")  # fmt: skip
        for index in range(1, (self.lines if lines is None else lines) + 1):
            self.add_line(index)

    def _spawn(self, argv: Sequence[str]) -> None:
        out = (self.directory / "ovs.out").open("ab")
        self._processes.append(subprocess.Popen([*self.inside, *argv], env=self.env, stdout=out, stderr=out))
        out.close()

    def vsctl(self, *argv: str) -> str:
        """ovs-vsctl of these switches."""
        return sh("ovs-vsctl", "--timeout=20", f"--db=unix:{self.directory}/db.sock", *argv, env=self.env)

    def ofctl(self, *argv: str) -> str:
        """ovs-ofctl of these switches: command, bridge, the rest."""
        command, bridge, *rest = argv
        return sh("ovs-ofctl", "-O", "OpenFlow13", command, f"unix:{self.directory}/{bridge}.mgmt", *rest)

    def appctl(self, *argv: str) -> str:
        """ovs-appctl of these switches."""
        return sh("ovs-appctl", "-t", "ovs-vswitchd", *argv, env=self.env)

    def add_line(self, index: int) -> None:
        """One more cable."""
        a, b = f"a-line{index}", f"b-line{index}"
        sh("ip", "-n", self.core, "link", "add", a, "type", "veth", "peer", "name", b)
        for name, side in ((a, "A"), (b, "B")):
            sh("ip", "-n", self.core, "link", "set", name, "up")
            self.vsctl("add-port", side, name)

    def add_host(self, name: str, side: str, number: int) -> None:
        """A host with addresses 198.18.0.`number` and fd5e:1::`number`."""
        space = f"{self.run_id}-{name}"
        self.space(space)
        port = f"{side.lower()}-{name}"
        sh("ip", "-n", self.core, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
        sh("ip", "-n", self.core, "link", "set", port, "up")
        sh("ip", "netns", "exec", space, "ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off")
        sh("ip", "-n", space, "link", "set", "eth0", "address", f"02:00:00:00:00:{number:02x}", "up")
        sh("ip", "-n", space, "address", "add", f"198.18.0.{number}/16", "dev", "eth0")
        sh("ip", "-n", space, "address", "add", f"fd5e:1::{number:x}/64", "dev", "eth0", "nodad")
        self.vsctl("add-port", side, port)
        self.hosts[name] = (side, str(number))

    # ------------------------------------------------------------ using

    def settings(self, **changes: object) -> Path:
        """A settings file for these switches; `text` is put in front."""
        edges = {
            side: json.dumps([f"{side.lower()}-{name}" for name, (at, _) in self.hosts.items() if at == side])
            for side in ("A", "B")
        }
        head = {"strategy": "round-robin", "mode": "reactive", "record": str(self.directory / "events.jsonl")}
        connect = {
            side: f'connect = "unix:{self.directory}/{side}.mgmt"' if changes.get("dial") else ""
            for side in ("A", "B")
        }
        changes.pop("dial", None)
        lines = changes.pop("lines", range(1, self.lines + 1))
        head |= changes
        text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in head.items())
        text += f"""
[listen]
openflow = "127.0.0.1:6653"
steering = "127.0.0.1:50052"
[[site]]
name = "home"
[site.A]
datapath_id = "00000000000000a1"
edge_ports = {edges["A"]}
{connect["A"]}
[site.B]
datapath_id = "00000000000000b1"
edge_ports = {edges["B"]}
{connect["B"]}
"""
        for index in lines:  # type: ignore[attr-defined]
            text += f'[[site.line]]\nname = "line{index}"\nport_A = "a-line{index}"\n'
            text += f'port_B = "b-line{index}"\ncapacity_bps = 10_000_000\n'
        path = self.directory / "controller.toml"
        path.write_text(text)
        return path

    def connect(self) -> None:
        """Tells the switches where the controller is."""
        for side in ("A", "B"):
            self.vsctl("set-controller", side, "tcp:127.0.0.1:6653", "--",
                       "set", "controller", side, "max_backoff=1000", "inactivity_probe=2000")  # fmt: skip

    def controller(self, name: str = "controller", ready: bool = True, **changes: object) -> Controller:
        """Starts the controller, and waits until it has both switches."""
        controller = Controller(self, self.settings(**changes), name)
        self._controllers.append(controller)
        before = controller.text().count("switch ready")
        if not changes.get("dial"):
            self.connect()
        if ready:
            controller.wait_log("switch ready", before + 2)
        return controller

    def ns(self, host: str) -> list[str]:
        """The start of a command inside a host."""
        return ["ip", "netns", "exec", f"{self.run_id}-{host}"]

    def address(self, host: str, version: int = 4) -> str:
        """A host's address."""
        number = self.hosts[host][1]
        return f"198.18.0.{number}" if version == 4 else f"fd5e:1::{int(number):x}"

    def ping(self, source: str, target: str, *options: str, version: int = 4) -> str:
        """Three pings; fails when one is lost."""
        out = sh(*self.ns(source), "ping", f"-{version}", "-c", "3", "-i", "0.1", "-W", "2", *options,
                 self.address(target, version), check=False)  # fmt: skip
        assert " 0% packet loss" in out, out
        return out

    def dump(self, bridge: str) -> str:
        """All rules of a switch."""
        return self.ofctl("dump-flows", bridge)

    def close(self) -> None:
        """Takes away exactly what was made."""
        for controller in self._controllers:
            if controller.process.poll() is None:
                controller.process.kill()
                controller.process.wait(10)
        for process in reversed(self._processes):
            process.terminate()
            process.wait(10)
        for space in reversed(self._spaces):
            sh("ip", "netns", "delete", space, check=False)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """Two switches, three lines, nothing else yet."""
    # A socket's path has 108 bytes: pytest's own directories are too deep for it.
    directory = Path(f"/tmp/steerline-test-{os.getpid()}-{time.monotonic_ns() & 0xFFFFFF:x}")
    directory.mkdir()
    net = Network(directory)
    try:
        yield net
    finally:
        net.close()
        shutil.rmtree(directory)


@pytest.fixture
def home(network: Network) -> Network:
    """Two customers and a server, three lines."""
    network.start()
    network.add_host("viewer", "A", 11)
    network.add_host("other", "A", 12)
    network.add_host("server", "B", 101)
    return network


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
