"""Which connections a real browser's native host reports, held against a capture at the customer's end.

The server ends connections now and then: nginx closes one that is older than `change_every_s` after its next
answer (`keepalive_time`), as servers do. caddy never closes one of QUIC; there the customer's machine gets an
address more or less, as when a VPN comes or goes, and Chromium is told to open its connections anew then.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steerline_testbed.experiment.clock import Zero, monotonic_s
from steerline_testbed.experiment.errors import ExperimentError
from steerline_testbed.experiment.jsons import json_lines
from steerline_testbed.experiment.settings import RunSettings
from steerline_testbed.experiment.stage import VIDEO_SERVER
from steerline_testbed.measure.capture import SNAPLEN, read_capture
from steerline_testbed.measure.flow_truth import reports_of, summarise
from steerline_testbed.measure.lab import Lab, Say, open_lab
from steerline_testbed.network import Process

VIEWER = "viewer1"
LEAST_CHANGE_S, MOST_CHANGE_S = 3.0, 600.0
LEAST_WINDOW_S, MOST_WINDOW_S = 1.0, 30.0
_NGINX = "nginx of the video-server"
_CAPTURE_PATIENCE_S = 10.0
# Chromium's own switch, by its name as a field trial: new requests go over a new connection.
_ANEW = (
    "--force-fieldtrials=QUIC/Enabled",
    "--force-fieldtrial-params=QUIC.Enabled:goaway_sessions_on_ip_change/true",
)
# For documentation (RFC 5737): nothing is there.
_ELSEWHERE = "192.0.2.77/32"


def measure(
    player: str,
    http: str,
    duration_s: float,
    change_every_s: float,
    window_s: float,
    seed: int,
    say: Say,
    keep: Path | None = None,
) -> dict[str, Any]:
    """One run of `player` over `http`; `change_every_s` of 0 leaves connections alone.

    `keep` is a folder for the capture and the host's record.

    Raises ExperimentError that names a value and what is allowed.
    """
    if change_every_s and not LEAST_CHANGE_S <= change_every_s <= MOST_CHANGE_S:
        raise ExperimentError(
            f"--change-every is {change_every_s:g}; "
            f"allowed: 0 (never), {LEAST_CHANGE_S:g} to {MOST_CHANGE_S:g} s"
        )
    if not LEAST_WINDOW_S <= window_s <= MOST_WINDOW_S:
        raise ExperimentError(f"--window is {window_s:g}; allowed: {LEAST_WINDOW_S:g} to {MOST_WINDOW_S:g} s")
    if player == "firefox" and http == "3":
        raise ExperimentError(
            "--http is 3; allowed with firefox: 1.1, 2 (its UDP sockets do not tell their server)"
        )
    settings = RunSettings.parse(
        {
            "strategy": "buffer-threshold",
            "player": player,
            "http": http,
            "flows": 0,
            "browsers": 0,
            "seed": seed,
            "duration_s": duration_s,
            "line_mbps": (10.0, 10.0),
        }
    )
    with open_lab(settings, say) as lab:
        if http == "3":
            lab.stage.browser_flags = _ANEW
        elif change_every_s:
            _end_old_connections(lab, change_every_s)
        say(f"starting {player}")
        lab.stage.prepare_players()
        capture = lab.network.directory / "tuples.pcap"
        tcpdump = _start_capture(lab, capture)
        say(f"watching for {duration_s:g} s")
        lab.stage.start_players(Zero.now())
        _watch(lab, duration_s, change_every_s if http == "3" else 0.0)
        versions = dict(lab.stage.audience.versions) if lab.stage.audience is not None else {}
        lab.stage.stop(*[name for name in lab.stage.cast if name.startswith("player")])
        tcpdump.stop()
        missed = dropped(tcpdump.tail(5))
        reports = reports_of(json_lines(lab.stage.raw / "host1.jsonl"))
        if not reports:
            raise ExperimentError("the native host reported nothing; see: steerline-agent status")
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for path in (capture, lab.stage.raw / "host1.jsonl"):
                shutil.copyfile(path, keep / path.name)
        packets = read_capture(capture.read_bytes(), VIDEO_SERVER)
        result = summarise(reports, packets, window_s)
    return {
        "player": versions.get(player, player),
        "http": http,
        "duration_s": duration_s,
        "change_every_s": change_every_s,
        "capture_dropped": missed,
        **result,
    }


def dropped(text: str) -> int | None:
    """What tcpdump says that it missed; None when it says nothing."""
    found = re.search(r"(\d+) packets? dropped by kernel", text)
    return int(found.group(1)) if found else None


def aged(configuration: str, seconds: float) -> str:
    """nginx's configuration with an age at which it ends a connection after its next answer."""
    return configuration.replace(
        "  keepalive_timeout", f"  keepalive_time {round(seconds * 1000)}ms;\n  keepalive_timeout", 1
    )


def _end_old_connections(lab: Lab, seconds: float) -> None:
    prefix = lab.network.directory / "video-server"
    path = prefix / "nginx.conf"
    path.write_text(aged(path.read_text(), seconds))
    argv: Sequence[str] = lab.stage.cast[_NGINX].argv
    done = lab.network.run("video-server", [*argv, "-s", "reload"])
    if done.returncode != 0:
        raise ExperimentError(f"nginx does not take --change-every: {done.stderr.strip()}")


def _start_capture(lab: Lab, path: Path) -> Process:
    command = ["tcpdump", "-i", "eth0", "-n", "-p", "-s", str(SNAPLEN), "-B", "8192", "-U", "-Z", "root"]
    process = lab.network.spawn(VIEWER, [*command, "-w", str(path), "host", VIDEO_SERVER], log="tcpdump.log")
    until_s = monotonic_s() + _CAPTURE_PATIENCE_S
    while "listening on" not in process.tail():
        process.require_running()
        if monotonic_s() > until_s:
            raise ExperimentError(f"tcpdump did not begin within {_CAPTURE_PATIENCE_S:g} s: {process.tail()}")
        time.sleep(0.05)
    return process


def _watch(lab: Lab, duration_s: float, other_network_every_s: float) -> None:
    """Until the end of the run; the customer's addresses change meanwhile, unless that is every 0 s."""
    began_s = monotonic_s()
    due_s = began_s + other_network_every_s
    while (now_s := monotonic_s()) < began_s + duration_s:
        lab.stage.assert_alive()
        if other_network_every_s and now_s >= due_s:
            due_s += other_network_every_s
            _change_addresses(lab)
        time.sleep(0.1)


def _change_addresses(lab: Lab) -> None:
    """One address more or less, which nobody speaks from: what a browser sees of a VPN that comes or goes."""
    for word in ("del", "add"):
        done = lab.network.run(VIEWER, ["ip", "address", word, _ELSEWHERE, "dev", "eth0"])
        if done.returncode == 0:
            return
    raise ExperimentError(f"{VIEWER} does not take {_ELSEWHERE}: {done.stderr.strip()}")
