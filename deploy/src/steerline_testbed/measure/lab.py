"""The set-up that the measurements share: a checked network, its services, cross traffic, paced flows."""

from __future__ import annotations

import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from steerline_testbed.experiment import media
from steerline_testbed.experiment.clock import Zero, monotonic_s
from steerline_testbed.experiment.media_recipe import Recipe
from steerline_testbed.experiment.settings import RunSettings
from steerline_testbed.experiment.stage import VIDEO_SERVER, Stage
from steerline_testbed.measure.paced import SERVER_PORT, Arrival, read
from steerline_testbed.network import Network, Process

Say = Callable[[str], None]


@dataclass(slots=True)
class Lab:
    """A running network and what a measurement needs of it."""

    network: Network
    stage: Stage
    say: Say
    _receivers: dict[str, tuple[Process, Path]] = field(default_factory=dict[str, tuple[Process, Path]])

    def python(self, node: str, module: str, *arguments: str, log: str) -> Process:
        """A module of this package in a host's namespace."""
        command = [sys.executable, "-m", f"steerline_testbed.measure.{module}", *arguments]
        return self.network.spawn(node, command, log=log)

    def pace(self, rate: float, size: int, until_s: float, stream_bps: float = 0.0) -> Process:
        """Starts the sender of numbered packets at the video server."""
        arguments = ["send", "--source", VIDEO_SERVER, "--rate", f"{rate:g}", "--size", str(size)]
        arguments += ["--until", f"{until_s:g}", "--stream-bps", f"{stream_bps:g}"]
        return self.python("video-server", "paced", *arguments, log="paced-send.log")

    def receive(self, node: str, ports: Sequence[int], stream: int = 0) -> None:
        """Starts a customer's end of paced flows, one per port."""
        record = self.network.directory / f"paced-{node}.bin"
        arguments = ["receive", "--bind", self.network.nodes[node].ipv4, "--server", VIDEO_SERVER]
        arguments += ["--ports", ",".join(map(str, ports)), "--record", str(record), "--stream", str(stream)]
        process = self.python(node, "paced", *arguments, log=f"paced-{node}.log")
        self._receivers[node] = (process, record)

    def arrivals(self, node: str) -> dict[int, list[Arrival]]:
        """Ends a receiver; what came, by port."""
        process, record = self._receivers.pop(node)
        process.require_running()
        process.stop()
        return read(record)

    def reporter(self, node: str, protocols: Sequence[int] = (17,)) -> tuple[Process, Path]:
        """Starts an agent that says what it is told over the returned socket."""
        path = Path(tempfile.gettempdir()) / f"steerline-{self.network.run_id}.sock"
        path.unlink(missing_ok=True)
        settings = self.network.station_settings()
        arguments = ["--station", settings["listen"]["reports"], "--ca", str(self.network.certificates.ca)]
        arguments += ["--socket", str(path), "--client", self.network.nodes[node].ipv4]
        arguments += ["--server", VIDEO_SERVER, "--server-port", str(SERVER_PORT)]
        arguments += ["--protocols", *map(str, protocols)]
        process = self.python(node, "reporter", *arguments, log="reporter.log")
        until = monotonic_s() + 10
        while not path.exists():
            process.require_running()
            if monotonic_s() > until:
                raise TimeoutError(f"the reporter did not start within 10 s:\n{process.tail()}")
            time.sleep(0.05)
        return process, path

    def worker(self, kind: str, socket: Path, port: int, count: int, gap_s: float, out: Path) -> Process:
        """Starts the part that talks to the controller; the paced flow is viewer1's."""
        ports = ",".join(f"{line.name}={line.port_b}" for line in self.network.plan.lines)
        arguments = [kind, "--socket", str(socket), "--client", self.network.nodes["viewer1"].ipv4]
        arguments += ["--port", str(port), "--server-port", str(SERVER_PORT)]
        arguments += ["--ports", ports, "--count", str(count), "--gap", f"{gap_s:g}", "--out", str(out)]
        return self.python("core", "worker", *arguments, log="worker.log")

    def wait(self, process: Process, done: Callable[[], str], every_s: float = 10.0) -> None:
        """Waits for a program to end well, and says how far it is."""
        next_at = monotonic_s() + every_s
        while process.running:
            self.stage.assert_alive()
            if monotonic_s() >= next_at:
                next_at += every_s
                self.say(done())
            time.sleep(0.2)
        if process.returncode != 0:
            process.require_running()

    def counters(self, node: str) -> Mapping[str, int]:
        """TCP's counters of a host, as in /proc/net/netstat and /proc/net/snmp."""
        text = self.network.run(node, ["cat", "/proc/net/snmp", "/proc/net/netstat"]).stdout
        return parse_counters(text)


def parse_counters(text: str) -> dict[str, int]:
    """Name lines followed by value lines, of the Tcp and TcpExt groups."""
    found: dict[str, int] = {}
    lines = [line.split() for line in text.splitlines()]
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        if names and names[0] in ("Tcp:", "TcpExt:"):
            found |= {name: int(value) for name, value in zip(names[1:], values[1:], strict=True)}
    return found


def lab_settings(strategy: str, flows: int, seed: int, mode: str = "reactive") -> RunSettings:
    """One viewer, downloads that start at once, nobody who browses: a measurement wants it steady."""
    return RunSettings.parse(
        {
            "strategy": strategy,
            "videos": 1,
            "flows": flows,
            "seed": seed,
            "browsers": 0,
            "mode": mode,
            "traffic_start_s": 0.0,
            "traffic_interval_s": 0.1,
            "duration_s": 840.0,
        }
    )


@contextmanager
def open_lab(settings: RunSettings, say: Say, players: bool = False) -> Generator[Lab]:
    """Builds, checks and starts everything; downloads run when it is handed over."""
    say("looking for the video")
    folder = media.ensure(Recipe(), progress=lambda what, done: say(f"{what}: {done:4.0%}"))
    run_id = f"measure-{secrets.token_hex(3)}"
    with (
        tempfile.TemporaryDirectory(prefix="steerline-measure-") as raw,
        Network.create(settings.topology(), run_id, say=say) as network,
    ):
        network.start_switches()
        say("measuring whether the network is the one asked for")
        network.check()
        stage = Stage(network, settings, Path(raw))
        stage.start_core(folder)
        lab = Lab(network, stage, say)
        if players:
            stage.start_players(Zero.now())
        if settings.flows:
            say(f"starting {settings.flows} downloads")
            stage.start_traffic(Zero.now())
            time.sleep(settings.traffic_start_s + settings.flows * settings.traffic_interval_s + 3)
        yield lab


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1_000_000) * len(ordered) // 1_000_000) - 1)]


def spread(values: Sequence[float]) -> dict[str, float]:
    """n, p50, p99 and the maximum."""
    if not values:
        return {"n": 0}
    return {
        "n": len(values),
        "p50": round(percentile(values, 0.50), 3),
        "p99": round(percentile(values, 0.99), 3),
        "max": round(max(values), 3),
    }
