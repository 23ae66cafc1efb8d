"""What the station heard beside what the pages know: whether it is right, and how often it came.

Pure but for reading the two kinds of records.
"""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from steerline_testbed.experiment.clock import Zero
from steerline_testbed.experiment.jsons import json_lines, number
from steerline_testbed.experiment.series import Sample, read_player

# Sessions with fewer comparable reports are not told apart by their buffers.
LEAST_COMPARED = 3
_OTHER_STATE_S = 10.0
_LONGEST_STEP_S = 2.0
_IN_PLAY = ("PLAYING",)


@dataclass(frozen=True, slots=True)
class Report:
    """One report as the station took it; `time_s` is when the extension made it."""

    time_s: float
    arrived_s: float
    buffer_s: float
    state: str


@dataclass(frozen=True, slots=True)
class Track:
    """One tab: the customer it belongs to, and what its page told."""

    addresses: Sequence[str]
    samples: Sequence[Sample]


@dataclass(slots=True)
class Session:
    """One session of the station."""

    address: str = ""
    reports: list[Report] = field(default_factory=list[Report])


@dataclass(frozen=True, slots=True)
class Reporting:
    """The figures of one video. Times in seconds since time zero."""

    session_ids: list[str]
    reports: int
    share_of_seconds: float | None
    longest_gap_s: float | None
    mean_difference_s: float | None
    largest_difference_s: float | None
    first_report_s: float | None


def compare(record: Path, tracks: Mapping[str, Track], zero: Zero, end_s: float) -> dict[str, dict[str, Any]]:
    """The figures of each track, by its name."""
    sessions = read_sessions(json_lines(record), zero)
    mine: dict[str, list[str]] = {name: [] for name in tracks}
    for session_id, session in sessions.items():
        owner = owner_of(session, tracks)
        if owner is not None:
            mine[owner].append(session_id)
    return {
        name: asdict(figures({one: sessions[one] for one in mine[name]}, track, end_s))
        for name, track in tracks.items()
    }


def read_sessions(rows: Iterable[Mapping[str, Any]], zero: Zero) -> dict[str, Session]:
    """The station's record as sessions, by id."""
    found: dict[str, Session] = {}
    for row in rows:
        if row.get("kind") not in ("session", "sample"):
            continue
        session = found.setdefault(str(row.get("session_id", "")), Session())
        if row["kind"] == "session":
            session.address = str(row.get("address", ""))
            continue
        session.reports.append(
            Report(
                time_s=zero.relative(number(row.get("timestamp_ms")) / 1000),
                arrived_s=zero.relative(number(row.get("time_s"))),
                buffer_s=number(row.get("buffer_length_ms")) / 1000,
                state=str(row.get("player_state", "")),
            )
        )
    return found


def read_track(path: Path, addresses: Sequence[str], zero: Zero) -> Track:
    """One tab's record."""
    return Track(addresses, sorted(read_player(json_lines(path), 1, zero), key=lambda one: one.time_s))


def owner_of(session: Session, tracks: Mapping[str, Track]) -> str | None:
    """The track that a session is of: its customer's, and of those the one whose buffer it tells best.

    Behind address translation the address tells nothing, and every track may be it.
    """
    same = {name: track for name, track in tracks.items() if session.address in track.addresses}
    candidates = same or tracks
    if len(candidates) == 1:
        return next(iter(candidates))
    measured = {name: distance_s(session.reports, track.samples) for name, track in candidates.items()}
    known = {name: apart_s for name, apart_s in measured.items() if apart_s is not None}
    return min(known, key=lambda name: known[name]) if known else None


def distance_s(reports: Iterable[Report], samples: Sequence[Sample]) -> float | None:
    """How far these reports are from being of this page: mean seconds of buffer, more where states differ.

    None with fewer than three reports during the page's time.
    """
    times = [one.time_s for one in samples]
    found: list[float] = []
    for report in reports:
        after = bisect.bisect_right(times, report.time_s)
        if 0 < after < len(samples):
            near = samples[after - 1 : after + 1]
            apart_s = min(abs(one.buffer_s - report.buffer_s) for one in near)
            same = any(one.state == report.state for one in near)
            found.append(apart_s if same else apart_s + _OTHER_STATE_S)
    return statistics.fmean(found) if len(found) >= LEAST_COMPARED else None


def differences(reports: Iterable[Report], samples: Sequence[Sample]) -> list[float]:
    """Seconds between reported and true buffer, for each report between two samples of the page in play.

    Between two samples the buffer falls by a second per second and jumps when a segment arrives, nobody
    knows when: it was what the sample before says, less what was played since, or what the sample after
    says and what was played until then.
    """
    times = [one.time_s for one in samples]
    found: list[float] = []
    for report in reports:
        after = bisect.bisect_right(times, report.time_s)
        if report.state not in _IN_PLAY or not 0 < after < len(samples):
            continue
        one, two = samples[after - 1], samples[after]
        if two.time_s - one.time_s > _LONGEST_STEP_S or not {one.state, two.state} <= set(_IN_PLAY):
            continue
        before_s = one.buffer_s - (report.time_s - one.time_s)
        after_s = two.buffer_s + (two.time_s - report.time_s)
        found.append(min(abs(report.buffer_s - before_s), abs(report.buffer_s - after_s)))
    return found


def figures(sessions: Mapping[str, Session], track: Track, end_s: float) -> Reporting:
    """The figures of one track from the sessions that are its own."""
    reports = sorted(
        (one for session in sessions.values() for one in session.reports if one.arrived_s <= end_s),
        key=lambda one: one.arrived_s,
    )
    apart = differences(reports, track.samples)
    arrivals = [one.arrived_s for one in reports]
    start_s = next((one.time_s for one in track.samples if one.state == "PLAYING"), None)
    return Reporting(
        session_ids=sorted(sessions, key=lambda one: min(r.arrived_s for r in sessions[one].reports)),
        reports=len(reports),
        share_of_seconds=None if start_s is None else share_of_seconds(arrivals, start_s, end_s),
        longest_gap_s=max((b - a for a, b in pairwise(arrivals)), default=None),
        mean_difference_s=statistics.fmean(apart) if apart else None,
        largest_difference_s=max(apart, default=None),
        first_report_s=max(0.0, arrivals[0]) if arrivals else None,
    )


def share_of_seconds(arrivals: Sequence[float], start_s: float, end_s: float) -> float | None:
    """Of the whole seconds from `start_s` to `end_s`: those in which a report came."""
    count = int(end_s - start_s)
    if count < 1:
        return None
    return len({int(at_s - start_s) for at_s in arrivals if start_s <= at_s < start_s + count}) / count
