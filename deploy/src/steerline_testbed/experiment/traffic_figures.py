"""Figures of lines, downloads and decisions, as pure functions of what was recorded.

Times are seconds since the start of the player, rates bit/s. Used bandwidth is layer-2 bytes that came
out of the leased lines in the download direction.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steerline_testbed.experiment.series import DecisionRow, DownloadLife, DownloadSample, LineSample


def bytes_between(points: Sequence[tuple[float, int]], begin_s: float, end_s: float) -> float:
    """Bytes that a running counter counted in [begin_s, end_s], by linear interpolation.

    `points` are (time, count) by time. A counter that falls began anew at 0 (its line was cut).
    """
    unwound: list[tuple[float, float]] = []
    total, last = 0.0, None
    for time_s, count in points:
        total += 0.0 if last is None else (count - last if count >= last else count)
        last = count
        unwound.append((time_s, total))
    return _at(unwound, end_s) - _at(unwound, begin_s) if end_s > begin_s else 0.0


def _at(points: Sequence[tuple[float, float]], time_s: float) -> float:
    if not points:
        return 0.0
    if time_s <= points[0][0]:
        return points[0][1]
    for (t0, c0), (t1, c1) in itertools.pairwise(points):
        if t0 <= time_s <= t1:
            return c1 if t1 == t0 else c0 + (c1 - c0) * (time_s - t0) / (t1 - t0)
    return points[-1][1]


def used_bps(samples: Sequence[LineSample], begin_s: float, end_s: float) -> dict[str, float]:
    """Used bandwidth of each line in the download direction over [begin_s, end_s]."""
    points: dict[str, list[tuple[float, int]]] = {}
    for one in samples:
        points.setdefault(one.line, []).append((one.time_s, one.down_bytes))
    length_s = end_s - begin_s
    return {
        line: bytes_between(counts, begin_s, end_s) * 8 / length_s if length_s > 0 else 0.0
        for line, counts in points.items()
    }


def longest_gap_s(samples: Sequence[LineSample], end_s: float) -> float | None:
    """The longest time from 0 to the end for which nobody looked at the lines; None without a look.

    The runner looks twice a second; a long gap means that the machine had no time for its own instrument.
    """
    times = sorted({one.time_s for one in samples if one.time_s <= end_s})
    if not times:
        return None
    return max(later - earlier for earlier, later in itertools.pairwise([0.0, *times, end_s]))


def rho(used: Mapping[str, float], capacity_bps: Mapping[str, int]) -> float | None:
    """Mean used bandwidth over available bandwidth of all lines; lines never seen count as unused."""
    available = sum(capacity_bps.values())
    return sum(used.values()) / available if available > 0 else None


@dataclass(frozen=True, slots=True)
class DownloadFigures:
    """Rates of the downloads, each over its own active time, in bit/s."""

    count: int
    ended_early: int
    mean_bps: float | None
    median_bps: float | None
    slowest_bps: float | None
    fastest_bps: float | None
    fairness: float | None
    last_started_at_s: float | None
    rates_bps: tuple[float, ...]


def download_figures(
    samples: Sequence[DownloadSample], lives: Mapping[int, DownloadLife], end_s: float
) -> DownloadFigures:
    """`fairness` is Jain's index: 1 when all got the same, 1/n when one got all."""
    bytes_of: dict[int, int] = {}
    for one in samples:
        if one.time_s <= end_s:
            bytes_of[one.download] = max(bytes_of.get(one.download, 0), one.bytes)
    rates: list[float] = []
    for which, life in sorted(lives.items()):
        seen = [one.time_s for one in samples if one.download == which and one.time_s <= end_s]
        until = life.end_s if life.end_s is not None else max(seen, default=end_s)
        active_s = min(end_s, until) - life.start_s
        rates.append(bytes_of.get(which, 0) * 8 / active_s if active_s > 0 else 0.0)
    squares = sum(rate * rate for rate in rates)
    return DownloadFigures(
        count=len(rates),
        ended_early=sum(1 for life in lives.values() if life.end_s is not None and life.end_s < end_s),
        mean_bps=statistics.fmean(rates) if rates else None,
        median_bps=statistics.median(rates) if rates else None,
        slowest_bps=min(rates, default=None),
        fastest_bps=max(rates, default=None),
        fairness=sum(rates) ** 2 / (len(rates) * squares) if squares > 0 else None,
        last_started_at_s=max((life.start_s for life in lives.values()), default=None),
        rates_bps=tuple(rates),
    )


@dataclass(frozen=True, slots=True)
class DecisionFigures:
    """How many decisions of each kind, and how often a flow that had a line was put on another."""

    steer: int
    keep: int
    release: int
    moves: int
    moves_per_minute: float | None


def decision_figures(rows: Sequence[DecisionRow], begin_s: float, end_s: float) -> DecisionFigures:
    """Moves per minute are counted over [begin_s, end_s], kinds over the whole run."""
    moves = [
        row
        for row in rows
        if row.kind in ("steer", "release")
        and row.from_line
        and row.to_line
        and row.from_line != row.to_line
        and begin_s <= row.time_s <= end_s
    ]
    minutes = (end_s - begin_s) / 60
    count = {kind: sum(1 for row in rows if row.kind == kind) for kind in ("steer", "keep", "release")}
    return DecisionFigures(
        **count, moves=len(moves), moves_per_minute=len(moves) / minutes if minutes > 0 else None
    )
