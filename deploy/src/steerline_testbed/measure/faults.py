"""What a dead line and a dead controller cost: numbered flows on every line, gaps and losses counted."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from steerline_testbed.measure.lab import Lab, Say, lab_settings, open_lab, spread
from steerline_testbed.measure.paced import Arrival, account

FIRST_PORT = 7001
RATE = 200.0
SIZE = 200
# A restart is judged for this long after the controller was started again.
AFTER_S = 6.0
How = Literal["carrier", "silent"]


def cuts(how: How, count: int, flows: int, seed: int, say: Say) -> dict[str, Any]:
    """Cuts one line after the other, `count` times, while a video plays. Gaps in s, of flows on that line."""
    with open_lab(lab_settings("buffer-threshold", flows, seed), say, players=True) as lab:
        names = [line.name for line in lab.network.plan.lines]
        ports = [FIRST_PORT + i for i in range(len(names) * 2)]
        lab.pace(rate=RATE, size=SIZE, until_s=24 * 3600)
        lab.receive("downloader", ports)
        time.sleep(5)
        events: list[tuple[str, int, int]] = []
        for number in range(count):
            line = names[number % len(names)]
            cut_ns = time.monotonic_ns()
            lab.network.cut_line(line, how)
            time.sleep(6)
            events.append((line, cut_ns, time.monotonic_ns()))
            lab.network.restore_line(line)
            time.sleep(6)
            lab.stage.assert_alive()
            say(f"{number + 1} of {count} cuts ({how})")
        arrivals = lab.arrivals("downloader")
        lab.stage.stop("player 1")
        gaps = [longest_gap_s(arrivals, begin, end) for _, begin, end in events]
        return {
            "how": how,
            "cuts": count,
            "flows": flows,
            "seed": seed,
            "gap_s": spread([gap for gap in gaps if gap is not None]),
            "gaps_s": [None if gap is None else round(gap, 3) for gap in gaps],
            "video": last_sample(lab.stage.raw / "player1.jsonl"),
        }


def longest_gap_s(arrivals: Mapping[int, Sequence[Arrival]], begin_ns: int, end_ns: int) -> float | None:
    """The longest time without a packet that any flow saw while a line was cut."""
    longest = None
    for came in arrivals.values():
        times = [a.at_ns for a in came if begin_ns - 50_000_000 <= a.at_ns <= end_ns]
        times = [max(times[0], begin_ns), *times[1:], end_ns] if times else [begin_ns, end_ns]
        gap = max((b - a) / 1e9 for a, b in pairwise(times))
        longest = gap if longest is None else max(longest, gap)
    return longest


def last_sample(record: Path) -> dict[str, Any]:
    """Stalls of a player at the end of its record."""
    rows = [json.loads(line) for line in record.read_text().splitlines() if line.endswith("}")]
    samples = [row for row in rows if row.get("kind") == "sample"]
    played = [row for row in samples if row["player_state"].upper() == "PLAYING"]
    return {
        "stalls": samples[-1]["stall_count"],
        "stall_s": samples[-1]["stall_s"],
        "least_buffer_s": min((row["buffer_s"] for row in played[20:]), default=None),
    }


def restarts(count: int, flows: int, seed: int, away_s: float, mode: str, say: Say) -> dict[str, Any]:
    """Kills the controller (SIGKILL) and starts it again, `count` times, under numbered flows."""
    with open_lab(lab_settings("buffer-threshold", flows, seed, mode), say) as lab:
        ports = [FIRST_PORT + i for i in range(10)]
        lab.pace(rate=RATE, size=SIZE, until_s=24 * 3600)
        lab.receive("downloader", ports)
        lab.receive("viewer1", [FIRST_PORT])
        _, socket = lab.reporter("viewer1")
        time.sleep(5)
        controller = lab.stage.cast["controller"]
        back: list[float] = []
        windows: list[tuple[int, int]] = []
        calm: list[tuple[int, int]] = []
        for number in range(count):
            rested = time.monotonic_ns()
            time.sleep(away_s + AFTER_S)
            begin = time.monotonic_ns()
            calm.append((rested, begin))
            controller.signal(signal.SIGKILL)
            controller.wait(5)
            time.sleep(away_s)
            restarted = time.monotonic()
            controller = lab.stage.cast["controller"] = lab.network.spawn(
                "core", list(controller.argv), log="controller.log"
            )
            out = lab.network.directory / f"restart{number}.jsonl"
            back.append(_steering_back_s(lab, socket, out, restarted))
            time.sleep(max(0.0, AFTER_S - back[-1]))
            windows.append((begin, time.monotonic_ns()))
            say(f"{number + 1} of {count} restarts, steering back after {back[-1]:.2f} s")
        arrivals = lab.arrivals("downloader")
        whole = {port: account(came) for port, came in arrivals.items()}
        return {
            "restarts": count,
            "mode": mode,
            "flows": flows,
            "seed": seed,
            "away_s": away_s,
            "numbered_flows": len(arrivals),
            "packets": sum(one.sent for one in whole.values()),
            # Full queues drop packets with or without a controller: what counts is the difference.
            "lost_around_restarts": [_lost(arrivals, begin, end) for begin, end in windows],
            "lost_at_rest": [_lost(arrivals, begin, end) for begin, end in calm],
            "longest_gap_ms": round(max(one.longest_gap_s for one in whole.values()) * 1000, 1),
            "steering_back_s": spread(back),
        }


def _steering_back_s(lab: Lab, socket: Path, out: Path, restarted: float) -> float:
    """From the controller's start until a crossing report leads to a barrier reply."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        worker = lab.worker("crossings", socket, FIRST_PORT, 1, 0.0, out)
        worker.wait(30)
        if worker.returncode == 0 and '"barrier_ms"' in out.read_text():
            return time.monotonic() - restarted
        time.sleep(0.1)
    raise TimeoutError(f"no steering within 30 s of the restart:\n{lab.stage.cast['controller'].tail()}")


def _lost(arrivals: Mapping[int, Sequence[Arrival]], begin_ns: int, end_ns: int) -> int:
    return sum(account([a for a in came if begin_ns <= a.at_ns <= end_ns]).lost for came in arrivals.values())
