"""What TCP gives a connection that fetches pieces, beside connections that never pause.

A player's connection is silent for a round trip between two segments. Whether that changes its share of a
full line is measured here: one line, some downloads, and one customer that asks for pieces of one size.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

from steerline_testbed.experiment.jsons import json_lines, mapping, number
from steerline_testbed.experiment.servers import make_endless
from steerline_testbed.experiment.settings import RunSettings
from steerline_testbed.experiment.stage import DOWNLOAD_SERVER, VIDEO_SERVER
from steerline_testbed.measure.lab import Lab, Say, open_lab

ADDRESSES = {"download-server": DOWNLOAD_SERVER, "video-server": VIDEO_SERVER}
WINDOW_S = 60.0
SETTLE_S = 10.0
PATIENCE_S = 30.0


def measure(
    count: int, flows: int, lines: int, seed: int, pieces_s: Sequence[float], servers: Sequence[str], say: Say
) -> dict[str, Any]:
    """`count` windows of 60 s per size and server, in turn.

    A size is given in seconds of video of 2.58 Mbit/s; 0 is endless. The downloads' server is
    "download-server"; the video's own is "video-server".
    """
    settings = RunSettings.parse(
        {
            "strategy": "round-robin",
            "line_mbps": (10.0,) * lines,
            "flows": flows,
            "seed": seed,
            "browsers": 0,
            "traffic_start_s": 0.0,
            "traffic_interval_s": 0.5,
            "duration_s": 840.0,
        }
    )
    kinds = [(server, piece_s) for server in servers for piece_s in pieces_s]
    ratios: dict[tuple[str, float], list[float]] = {kind: [] for kind in kinds}
    rates: dict[tuple[str, float], list[float]] = {kind: [] for kind in kinds}
    with open_lab(settings, say) as lab:
        make_endless(lab.network.directory / "video-server" / "html" / "big.bin")
        for turn in range(count):
            for kind in kinds:
                server, piece_s = kind
                mine, others = _window(lab, ADDRESSES[server], round(piece_s * 2_580_000 / 8))
                ratios[kind].append(mine / equal_share(mine, others, flows, lines))
                rates[kind].append(mine)
                heard = f"{mine:.2f} Mbit/s, each download {others:.2f}"
                say(f"{turn + 1} of {count}: {server}, pieces of {piece_s:g} s: {heard}")
    return {
        "flows": flows,
        "lines": lines,
        "window_s": WINDOW_S,
        "seed": seed,
        "pieces": [
            {
                "server": server,
                "seconds_of_video": piece_s,
                "mbps": _spread(rates[server, piece_s]),
                "times_equal_share": _spread(ratios[server, piece_s]),
            }
            for server, piece_s in kinds
        ],
    }


def equal_share(mine: float, others: float, flows: int, lines: int) -> float:
    """What the customer would get if all connections of its line got the same, in the unit of the rates.

    `others` is the mean of the downloads, which are spread evenly over full lines.
    """
    return (mine + others * flows) / lines / (flows / lines + 1)


def _window(lab: Lab, server: str, piece_bytes: int) -> tuple[float, float]:
    """Mbit/s of the customer and the mean of the downloads, over one window."""
    command = [sys.executable, "-m", "steerline_testbed.measure.fetcher", "--server", server]
    command += ["--piece", str(piece_bytes), "--settle", f"{SETTLE_S:g}", "--seconds", f"{WINDOW_S:g}"]
    process = lab.network.spawn("viewer1", command, log="fetcher.log")
    time.sleep(SETTLE_S)
    before = _downloaded(lab)
    time.sleep(WINDOW_S)
    after = _downloaded(lab)
    until_s = time.monotonic() + PATIENCE_S
    while process.running and time.monotonic() < until_s:
        time.sleep(0.1)
    lab.stage.assert_alive()
    mine = int(process.tail(1).split()[-1]) * 8 / WINDOW_S / 1e6
    spent_s = after[0] - before[0]
    others = statistics.fmean(after[1][name] - count for name, count in before[1].items()) * 8 / spent_s / 1e6
    return mine, others


def _downloaded(lab: Lab) -> tuple[float, dict[str, float]]:
    """The time of the latest record of the downloads, and the bytes of each until then."""
    latest = [one for one in json_lines(lab.stage.raw / "downloads.jsonl") if one.get("kind") == "bytes"][-1]
    counts = mapping(latest.get("bytes")) or {}
    return number(latest.get("time_s")), {name: number(count) for name, count in counts.items()}


def _spread(values: Sequence[float]) -> dict[str, Any]:
    return {
        "mean": round(statistics.fmean(values), 3),
        "least": round(min(values), 3),
        "most": round(max(values), 3),
        "all": [round(value, 3) for value in values],
    }
