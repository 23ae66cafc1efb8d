"""The figures of a run, as pure functions of what was recorded.

Times are seconds since the start of the player, rates bit/s. Definitions are the project's: used
bandwidth is layer-2 bytes that came out of the leased lines in the download direction; shares of
time and rho are taken from the start of the cross traffic to the end; statistics of the buffer from
the moment it first reached 50 s.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steerline_testbed.experiment.series import (
    DecisionRow,
    DownloadLife,
    DownloadSample,
    LineSample,
    Sample,
)

FULL_S = 50.0
LOW_S = 20.0
# A buffer that fills wobbles; it falls below 20 s only after it has been at the upper threshold.
HIGH_S = 35.0
STARTED_S = 2.0
EMPTY_S = 0.1
TOP_HEIGHT = 480
# A player's sample stands for the time until the next one, but not across a gap in its record.
LONGEST_STEP_S = 2.0


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of time during which a sample stood."""

    begin_s: float
    end_s: float
    sample: Sample

    @property
    def length_s(self) -> float:
        """Seconds."""
        return self.end_s - self.begin_s


def spans(samples: Sequence[Sample], begin_s: float, end_s: float) -> list[Span]:
    """Each sample with the time it stood, within [begin_s, end_s]. `samples` are of one player, by time."""
    found: list[Span] = []
    for index, sample in enumerate(samples):
        until = samples[index + 1].time_s if index + 1 < len(samples) else end_s
        until = min(until, sample.time_s + LONGEST_STEP_S)
        first, last = max(begin_s, sample.time_s), min(end_s, until)
        if last > first:
            found.append(Span(first, last, sample))
    return found


def share(pieces: Sequence[Span], holds: Sequence[bool]) -> float | None:
    """The share of the pieces' time in which the condition holds; None without time."""
    total = sum(piece.length_s for piece in pieces)
    if total <= 0:
        return None
    return sum(piece.length_s for piece, yes in zip(pieces, holds, strict=True) if yes) / total


def first_time(samples: Sequence[Sample], at_least_s: float) -> float | None:
    """When the buffer first reached so many seconds."""
    return next((one.time_s for one in samples if one.buffer_s >= at_least_s), None)


@dataclass(frozen=True, slots=True)
class BufferFigures:
    """Statistics of the buffered playtime of one player. None: it never came to that."""

    mean_s: float | None
    minimum_s: float | None
    share_at_least_50_s: float | None
    share_below_20_s: float | None
    first_reached_50_s_at_s: float | None
    first_below_20_s_at_s: float | None
    first_empty_at_s: float | None


def buffer_figures(samples: Sequence[Sample], traffic_start_s: float, end_s: float) -> BufferFigures:
    """Mean and minimum from the moment of 50 s on; shares from `traffic_start_s` on; crossings downwards."""
    full_at = first_time(samples, FULL_S)
    after = spans(samples, full_at, end_s) if full_at is not None else []
    total = sum(piece.length_s for piece in after)
    shares = spans(samples, traffic_start_s, end_s)

    def falls(below_s: float, having_been_s: float) -> float | None:
        was_above = False
        for one in samples:
            if one.buffer_s >= having_been_s:
                was_above = True
            elif was_above and one.buffer_s < below_s:
                return one.time_s
        return None

    return BufferFigures(
        mean_s=sum(piece.length_s * piece.sample.buffer_s for piece in after) / total if total > 0 else None,
        minimum_s=min((piece.sample.buffer_s for piece in after), default=None),
        share_at_least_50_s=share(shares, [piece.sample.buffer_s >= FULL_S for piece in shares]),
        share_below_20_s=share(shares, [piece.sample.buffer_s < LOW_S for piece in shares]),
        first_reached_50_s_at_s=full_at,
        first_below_20_s_at_s=falls(LOW_S, HIGH_S),
        first_empty_at_s=falls(EMPTY_S, STARTED_S),
    )


@dataclass(frozen=True, slots=True)
class PlayFigures:
    """What the viewer saw. Times in seconds, shares 0 to 1."""

    start_up_delay_s: float | None
    stall_count: int
    stall_s: float
    first_stall_at_s: float | None
    quality_switches: int
    share_at_480p_of_played: float | None
    share_at_480p_of_wall: float | None
    played_s: float
    should_have_played_s: float
    played_share: float | None
    valid: bool
    reason: str


def play_figures(samples: Sequence[Sample], end_s: float) -> PlayFigures:
    """Stalls are spells of REBUFFERING after the first PLAYING; wall time counts from there too."""
    began = next((one.time_s for one in samples if one.state == "PLAYING"), None)
    if began is None:
        return PlayFigures(None, 0, 0.0, None, 0, None, None, 0.0, 0.0, None, False, "it never played")
    ended = next((one.time_s for one in samples if one.state == "ENDED"), end_s)
    stop_s = min(end_s, ended)
    pieces = spans(samples, began, stop_s)
    playing = [piece for piece in pieces if piece.sample.state == "PLAYING"]
    stalled = [piece for piece in pieces if piece.sample.state == "REBUFFERING"]
    stall_begins = [
        later.sample.time_s
        for earlier, later in itertools.pairwise(pieces)
        if later.sample.state == "REBUFFERING" and earlier.sample.state != "REBUFFERING"
    ]
    heights = [piece.sample.height for piece in playing if piece.sample.height > 0]
    switches = sum(1 for earlier, later in itertools.pairwise(heights) if earlier != later)
    stall_s = sum(piece.length_s for piece in stalled)
    wall_s = stop_s - began
    at_top_s = sum(piece.length_s for piece in playing if piece.sample.height >= TOP_HEIGHT)
    playing_s = sum(piece.length_s for piece in playing)
    played_s = _media_played_s(samples, began, stop_s, playing_s)
    valid, reason = _verdict(played_s, stall_s, wall_s)
    return PlayFigures(
        start_up_delay_s=began,
        stall_count=len(stall_begins),
        stall_s=stall_s,
        first_stall_at_s=stall_begins[0] if stall_begins else None,
        quality_switches=switches,
        share_at_480p_of_played=at_top_s / playing_s if playing_s > 0 else None,
        share_at_480p_of_wall=at_top_s / wall_s if wall_s > 0 else None,
        played_s=played_s,
        should_have_played_s=wall_s,
        played_share=played_s / wall_s if wall_s > 0 else None,
        valid=valid,
        reason=reason,
    )


def _media_played_s(samples: Sequence[Sample], began_s: float, stop_s: float, playing_s: float) -> float:
    """Media seconds from the player's own position where it tells it, else the time it was PLAYING."""
    positions = [one.played_s for one in samples if began_s <= one.time_s <= stop_s and one.played_s >= 0]
    return positions[-1] - positions[0] if len(positions) >= 2 else playing_s


def _verdict(played_s: float, stall_s: float, wall_s: float) -> tuple[bool, str]:
    if wall_s <= 0:
        return False, "no time was played"
    if played_s >= 0.95 * wall_s:
        return True, f"played {played_s / wall_s:.1%} of the time it should"
    if played_s + stall_s >= 0.95 * wall_s:
        return True, f"played {played_s / wall_s:.1%} of the time it should; stalls explain the rest"
    return False, (
        f"played {played_s:.1f} s and stalled {stall_s:.1f} s of {wall_s:.1f} s; allowed: at least 95 % "
        "of the time played, or stalls that explain the rest"
    )


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
