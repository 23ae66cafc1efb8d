"""The figures of a player, as pure functions of what was recorded.

Times are seconds since the start of the player. Shares of time are taken from the start of the cross
traffic to the end, statistics of the buffer from the moment it first reached 50 s.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from steerline_testbed.experiment.series import Sample

FULL_S = 50.0
LOW_S = 20.0
# A buffer that fills wobbles; it falls below 20 s only after it has been at the upper threshold.
HIGH_S = 35.0
LATE = "LATE"
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


def starvation(samples: Sequence[Sample]) -> list[Sample]:
    """The samples by time, where a picture that stands with media in store is LATE, not REBUFFERING.

    A browser on a loaded machine decodes too late, with 50 s in its buffer: no network is to blame for that.
    What counts is the buffer at the beginning: it fills while a player that starved still waits.
    """
    found: list[Sample] = []
    late = False
    for one in sorted(samples, key=lambda one: one.time_s):
        if one.state == "REBUFFERING":
            begins = not found or found[-1].state not in ("REBUFFERING", LATE)
            late = one.buffer_s >= STARTED_S if begins else late
            found.append(replace(one, state=LATE) if late else one)
        else:
            found.append(one)
    return found


@dataclass(frozen=True, slots=True)
class PlayFigures:
    """What the viewer saw. Times in seconds, shares 0 to 1."""

    start_up_delay_s: float | None
    stall_count: int
    stall_s: float
    late_s: float
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
    """Stalls are spells of REBUFFERING after the first PLAYING, for want of media; wall time counts from
    there too."""
    samples = starvation(samples)
    began = next((one.time_s for one in samples if one.state == "PLAYING"), None)
    if began is None:
        return PlayFigures(None, 0, 0.0, 0.0, None, 0, None, None, 0.0, 0.0, None, False, "it never played")
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
        late_s=sum(piece.length_s for piece in pieces if piece.sample.state == LATE),
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
