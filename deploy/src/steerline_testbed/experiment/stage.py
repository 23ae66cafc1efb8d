"""Puts a run's programs on the stage, in order, and tells which of them has left it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steerline_testbed.browser.audience import Audience
from steerline_testbed.browser.web import prepare_web_server
from steerline_testbed.experiment import servers
from steerline_testbed.experiment.agent import agent_command, find_agent
from steerline_testbed.experiment.clock import Zero, monotonic_s
from steerline_testbed.experiment.errors import ExperimentError, ProcessDiedError
from steerline_testbed.experiment.jsons import parse_mapping
from steerline_testbed.experiment.settings import RunSettings
from steerline_testbed.network import Network, Process

VIDEO_SERVER = "198.19.0.1"
DOWNLOAD_SERVER = "198.19.0.2"
PATIENCE_S = 20.0
# Room that must be left for what a process writes next; below it the disk counts as full.
DISK_FLOOR_BYTES = 1 << 20


@dataclass(slots=True)
class Stage:
    """A network with the programs of one run.

    `raw` is where their records go; `browser_flags` are further options of Chromium.
    """

    network: Network
    settings: RunSettings
    raw: Path
    cast: dict[str, Process] = field(default_factory=dict[str, Process])
    audience: Audience | None = None
    browser_flags: Sequence[str] = ()

    def start_core(self, media: Path, film: Path | None = None) -> None:
        """Controller, station and servers; returns when a customer reaches the video server.

        `film` is what the page wants beside the DASH folder `media`.
        """
        settings = self.settings
        options: dict[str, Any] = {
            "strategy": settings.strategy,
            "mode": settings.mode,
            "best_effort": settings.best_effort,
            "seed": settings.seed,
            "record": str((self.raw / "decisions.jsonl").resolve()),
        }
        controller = self.network.controller_settings(**options | settings.overrides_of("controller"))
        self.cast["controller"] = self.network.start_controller(controller)
        options = settings.overrides_of("station")
        if settings.player != "headless":
            # The page tells the truth; this is what came of it at the other end.
            options = {"record": str((self.raw / "reports.jsonl").resolve())} | options
        station = self.network.station_settings(**options)
        self.cast["application station"] = self.network.start_station(station)
        directory = self.network.directory
        programs = {"nginx of the download-server": servers.prepare_download_server(directory)}
        programs |= self._video_programs(media, film)
        for name, command in programs.items():
            program, _, node = name.partition(" of the ")
            log = f"{node}.log" if program == "nginx" else f"{program}.log"
            self.cast[name] = self.network.spawn(node, command, log=log)
        viewer = settings.viewers[0] if settings.viewers else "downloader"
        self._wait_for(viewer, f"http://{VIDEO_SERVER}/alive")
        self._wait_for("downloader", f"http://{DOWNLOAD_SERVER}/alive")

    def _video_programs(self, media: Path, film: Path | None) -> dict[str, list[str]]:
        directory, node = self.network.directory, self.network.node("video-server")
        if self.settings.player == "headless":
            return {"nginx of the video-server": servers.prepare_video_server(directory, media)}
        return prepare_web_server(
            directory,
            media,
            self.network.certificates,
            node.addresses,
            film,
            http3=self.settings.http == "3",
        )

    def _wait_for(self, node: str, url: str) -> None:
        until_s = monotonic_s() + PATIENCE_S
        while True:
            answer = self.network.run(node, _python("fetch", url))
            if answer.returncode == 0:
                return
            self.assert_alive()
            if monotonic_s() > until_s:
                raise ExperimentError(
                    f"{node} cannot reach {url} within {PATIENCE_S:g} s: {answer.stderr.strip()}; "
                    f"the controller's log ends:\n{self.cast['controller'].tail(15)}"
                )

    def prepare_players(self) -> None:
        """Browsers need seconds to start: they do it before time zero. Raises ExperimentError."""
        settings = self.settings
        if settings.player == "headless" or not settings.viewers:
            return
        self.audience = Audience(self.network, settings, self.raw, settings.player, self.browser_flags)
        self.cast |= self.audience.start()
        self.audience.wait_ready(self.assert_alive)

    def start_players(self, zero: Zero) -> None:
        """The browsers go to their pages; without them one headless player per video."""
        if self.audience is not None:
            self.audience.go(zero)
            return
        program = find_agent()
        for video, node in enumerate(self.settings.viewers, start=1):
            command = agent_command(
                program,
                video=video,
                ca=Path(self.network.certificates.ca),
                record=(self.raw / f"player{video}.jsonl").resolve(),
                rule=self.settings.rule,
                seed=self.settings.seed,
                overrides=self.settings.overrides_of("agent"),
            )
            self.cast[f"player {video}"] = self.network.spawn(node, command, log=f"player{video}.log")

    def start_traffic(self, zero: Zero) -> None:
        """The customers that download and browse; they wait by themselves for their time."""
        settings = self.settings
        first_at = ["--first-at", f"{zero.monotonic_s + settings.traffic_start_s:.6f}"]
        common = ["--server", DOWNLOAD_SERVER, "--seed", str(settings.seed)]
        if settings.flows:
            command = _python("traffic", "downloads", *common, *first_at)
            command += ["--count", str(settings.flows), "--interval", f"{settings.traffic_interval_s:g}"]
            command += ["--record", str((self.raw / "downloads.jsonl").resolve())]
            self.cast["download generator"] = self.network.spawn("downloader", command, log="downloads.log")
        if settings.browsers and settings.flows:
            command = _python("traffic", "browse", *common, *first_at)
            command += ["--record", str((self.raw / "browsing.jsonl").resolve())]
            self.cast["browsing customer"] = self.network.spawn("browser", command, log="browsing.log")

    def assert_alive(self) -> None:
        """Raises ProcessDiedError or, when that is why, an ExperimentError that names the full disk."""
        assert_room(self.raw)
        for name, process in self.cast.items():
            if process.running:
                continue
            if process.returncode == errno.ENOSPC:
                raise disk_full(self.raw)
            raise ProcessDiedError(name, process.returncode, process.tail(12))

    def stop(self, *names: str) -> None:
        """Ends these programs in order, so that they write what they still hold."""
        for name in names:
            process = self.cast.pop(name, None)
            if process is not None:
                process.stop()

    def congestion_control(self) -> dict[str, int]:
        """How many connections of the download server use which congestion control, as the kernel tells."""
        shown = self.network.run("download-server", ["ss", "-HtinO", "state", "established", "sport = :80"])
        return parse_congestion_control(shown.stdout)

    def enforcement(self) -> dict[str, Any] | None:
        """From the report at the station to the switches' barrier reply, as the station tells it."""
        answer = self.network.run("core", _python("fetch", "http://127.0.0.1:8080/latency"))
        if answer.returncode != 0:
            return None
        return parse_mapping(answer.stdout)

    def retransmitted(self) -> dict[str, int]:
        """TCP segments that each server has sent again so far."""
        found: dict[str, int] = {}
        for node in ("video-server", "download-server"):
            shown = self.network.run(node, ["cat", "/proc/net/snmp"])
            found[node] = parse_retransmitted(shown.stdout)
        return found


def assert_room(folder: Path) -> None:
    """Raises ExperimentError when the disk of `folder` is full."""
    state = os.statvfs(folder)
    if state.f_bavail * state.f_frsize < DISK_FLOOR_BYTES:
        raise disk_full(folder)


def disk_full(folder: Path) -> ExperimentError:
    """Names the disk and what it needs."""
    return ExperimentError(f"no space left on the disk of {folder}; a run needs about 50 MiB there")


def parse_congestion_control(text: str) -> dict[str, int]:
    """Counts the algorithm of each line of `ss -HtinO`: the first word after the two addresses."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 4:
            found[words[4]] = found.get(words[4], 0) + 1
    return found


def parse_retransmitted(text: str) -> int:
    """RetransSegs of /proc/net/snmp."""
    rows = [line.split()[1:] for line in text.splitlines() if line.startswith("Tcp:")]
    if len(rows) != 2:
        return 0
    return int(dict(zip(rows[0], rows[1], strict=False)).get("RetransSegs", "0"))


def _python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"steerline_testbed.experiment.{module}", *arguments]


def processor_times() -> tuple[float, float]:
    """(busy, total) jiffies of all processors since the machine started."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    times = [float(word) for word in words]
    return sum(times) - times[3] - times[4], sum(times)


def versions() -> Mapping[str, str]:
    """The kernel and Python; tools are added by the network's own report."""
    return {"kernel": os.uname().release, "python": sys.version.split()[0]}
