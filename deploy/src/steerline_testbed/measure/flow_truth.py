"""Whether the connections that a report names are those that carry the film, by a capture. Pure.

A report is judged by what has come down in the last seconds, on connections that still lived: it must name
the one that carried most and each that carried a tenth, and none that never was, or that ended a second ago
or earlier. Within a second after a change it is left out, and counted apart. Of UDP the end does not show.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steerline_testbed.experiment.jsons import number
from steerline_testbed.measure.capture import TCP, Connection, Packet

GRACE_S = 1.0
NEEDED_SHARE = 0.1
# With less in the window nothing is known: QUIC's acknowledgements, a playlist. A segment of sound is more.
LEAST_BYTES = 16 * 1024
# What has carried so little for so long is not needed by the film: players fetch each few seconds.
IDLE_S, IDLE_BYTES = 20.0, 4 * 1024
_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Named:
    """What one report says; `time_s` is Unix time."""

    time_s: float
    session_id: str
    connections: frozenset[Connection]


@dataclass(slots=True)
class Life:
    """One connection of the capture; `bytes_until` sums the payload that came down."""

    begun_s: float
    ended_s: float | None = None
    times_s: list[float] = field(default_factory=list[float])
    bytes_until: list[int] = field(default_factory=list[int])

    def carried(self, since_s: float, until_s: float) -> int:
        """Bytes of payload that came down after `since_s`, until `until_s`."""
        first, last = bisect.bisect(self.times_s, since_s), bisect.bisect(self.times_s, until_s)
        total = self.bytes_until[last - 1] if last else 0
        return total - (self.bytes_until[first - 1] if first else 0)

    def lives(self, at_s: float, grace_s: float = 0.0) -> bool:
        """Whether it had begun, and not ended more than `grace_s` ago."""
        return self.begun_s <= at_s and (self.ended_s is None or at_s <= self.ended_s + grace_s)


def lives_of(packets: Iterable[Packet]) -> dict[Connection, Life]:
    """What the capture knows of each connection."""
    found: dict[Connection, Life] = {}
    for packet in packets:
        life = found.setdefault(packet.connection, Life(packet.time_s))
        if packet.ends and life.ended_s is None:
            life.ended_s = packet.time_s
        if packet.down and packet.payload_bytes > 0:
            life.times_s.append(packet.time_s)
            life.bytes_until.append(packet.payload_bytes + (life.bytes_until[-1] if life.bytes_until else 0))
    return found


def changes_of(lives: Mapping[Connection, Life]) -> list[float]:
    """When a connection's first byte came, or one that had carried bytes ended. In order."""
    carrying = [life for life in lives.values() if life.times_s]
    ends = [life.ended_s for life in carrying if life.ended_s is not None]
    return sorted([life.times_s[0] for life in carrying] + ends)


def reports_of(rows: Iterable[Mapping[str, Any]]) -> list[Named]:
    """The reports of the native host's record, in order."""
    found = [
        Named(number(row["time_s"]), str(row["session_id"]), frozenset(map(_connection, row["flows"])))
        for row in rows
        if row.get("kind") == "report"
    ]
    return sorted(found, key=lambda one: one.time_s)


def _connection(row: Mapping[str, Any]) -> Connection:
    return Connection(
        int(row["protocol"]),
        str(row["client_address"]),
        int(row["client_port"]),
        str(row["server_address"]),
        int(row["server_port"]),
    )


@dataclass(frozen=True, slots=True)
class Judgement:
    """Of one report. `kind`: judged, after-change, nothing-carried."""

    kind: str
    report: Named
    carried: Mapping[Connection, int]
    missing: frozenset[Connection]
    invented: frozenset[Connection]
    ended: frozenset[Connection]
    idle: frozenset[Connection]

    @property
    def right(self) -> bool:
        """Nothing is missing, and nothing named that is not there."""
        return not (self.missing or self.invented or self.ended)


def judge(
    report: Named, lives: Mapping[Connection, Life], changes: Sequence[float], window_s: float
) -> Judgement:
    """One report by the last `window_s`, or the time since the last change if that is shorter."""
    now_s = report.time_s
    after = bisect.bisect(changes, now_s)
    changed_s = changes[after - 1] if after else float("-inf")
    # The byte that made the change belongs to the time after it.
    since_s = max(now_s - window_s, changed_s - 1e-6)
    living = {one: life for one, life in lives.items() if life.lives(now_s)}
    carried = {one: amount for one, life in living.items() if (amount := life.carried(since_s, now_s))}
    total = sum(carried.values())
    needed = {one for one, amount in carried.items() if amount >= NEEDED_SHARE * total}
    if carried:
        needed.add(max(carried, key=lambda one: carried[one]))
    seen = {one for one in report.connections if one in lives and lives[one].begun_s <= now_s}
    return Judgement(
        kind="after-change"
        if now_s - changed_s < GRACE_S
        else "nothing-carried"
        if total < LEAST_BYTES
        else "judged",
        report=report,
        carried=carried,
        missing=frozenset(needed - report.connections) if total >= LEAST_BYTES else frozenset(),
        invented=frozenset(report.connections - seen),
        ended=frozenset(one for one in seen if one.protocol == TCP and not lives[one].lives(now_s, GRACE_S)),
        idle=frozenset(one for one in seen if lives[one].carried(now_s - IDLE_S, now_s) < IDLE_BYTES),
    )


def summarise(reports: Sequence[Named], packets: Iterable[Packet], window_s: float) -> dict[str, Any]:
    """The figures of one run, and the reports that were wrong."""
    lives = lives_of(packets)
    changes = changes_of(lives)
    all_of = [judge(report, lives, changes, window_s) for report in reports]
    judged = [one for one in all_of if one.kind == "judged"]
    right = [one for one in judged if one.right]
    left_out = [one for one in all_of if one.kind == "after-change"]
    media = [one for one, life in lives.items() if life.carried(float("-inf"), float("inf")) >= LEAST_BYTES]
    wrong = [one for one in judged if not one.right]
    return {
        "window_s": window_s,
        "reports": len(all_of),
        "judged": len(judged),
        "right": len(right),
        "share_right": round(len(right) / len(judged), 4) if judged else None,
        "right_and_no_idle_one": sum(not one.idle for one in right),
        "left_out_after_change": len(left_out),
        "right_of_those": sum(one.right for one in left_out),
        "left_out_nothing_carried": sum(one.kind == "nothing-carried" for one in all_of),
        "changes": len(changes),
        "connections": [str(one) for one in sorted(media, key=lambda one: lives[one].begun_s)],
        "wrong": [_shown(one, reports[0].time_s) for one in wrong[:_MOST_SHOWN]],
    }


def _shown(one: Judgement, zero_s: float) -> dict[str, Any]:
    return {
        "at_s": round(one.report.time_s - zero_s, 3),
        "session_id": one.report.session_id,
        "reported": sorted(map(str, one.report.connections)),
        "carried_bytes": {str(connection): amount for connection, amount in one.carried.items()},
        "missing": sorted(map(str, one.missing)),
        "invented": sorted(map(str, one.invented)),
        "ended": sorted(map(str, one.ended)),
    }
