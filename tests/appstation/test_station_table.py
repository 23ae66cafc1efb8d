"""Which reports count, whose a session is, and when it ends."""

from __future__ import annotations

import dataclasses

from steerline_appstation.core.policy import Policy
from steerline_appstation.core.station import Accepted, History, Rejected, RejectionReason, Station
from steerline_contract.flows import parse_address
from steerline_contract.playback import PlaybackReport, PlayerState, ReportCause

from .words import PEER, at

OTHER = parse_address("198.18.1.12")


def rejected(outcome: object) -> tuple[RejectionReason, str]:
    assert isinstance(outcome, Rejected)
    return outcome.reason, outcome.field


def accepted(outcome: object) -> Accepted:
    assert isinstance(outcome, Accepted), outcome
    return outcome


def late(report: PlaybackReport) -> PlaybackReport:
    return dataclasses.replace(report, cause=ReportCause.REPLAYED)


def test_changes_are_told() -> None:
    """`changed` is said at the crossing, and only there."""
    station = Station(Policy())
    levels = [50, 19, 18, 35, 36]
    outcomes = [accepted(station.report(at(s, b), PEER, s)) for s, b in enumerate(levels)]
    assert [o.changed for o in outcomes] == [False, True, False, True, False]
    assert [o.opened for o in outcomes] == [True, False, False, False, False]


def test_sequence_numbers_come_once() -> None:
    """A number seen, or one from before, does not count."""
    station = Station(Policy())
    accepted(station.report(at(5, 50), PEER, 5))
    for report in (at(5, 50), at(4, 50)):
        assert rejected(station.report(report, PEER, 6)) == (RejectionReason.OUT_OF_ORDER, "sequence_number")


def test_time_does_not_run_backwards() -> None:
    """An agent's clock that falls is told so; the same instant twice is fine."""
    station = Station(Policy())
    accepted(station.report(at(5, 50), PEER, 5))
    back = dataclasses.replace(at(6, 50), timestamp_ms=at(4, 50).timestamp_ms)
    assert rejected(station.report(back, PEER, 6)) == (RejectionReason.OUT_OF_ORDER, "timestamp_ms")
    same = dataclasses.replace(at(6, 50), timestamp_ms=at(5, 50).timestamp_ms)
    accepted(station.report(same, PEER, 6))


def test_replayed_reports_are_history() -> None:
    """Late reports are stored once, in whatever order, and change no assessment."""
    station = Station(Policy())
    accepted(station.report(at(9, 50), PEER, 9))
    assert station.report(late(at(3, 5)), PEER, 9) == History(opened=False)
    assert station.report(late(at(2, 5)), PEER, 9) == History(opened=False)
    for again in (at(3, 5), at(9, 50)):
        assert rejected(station.report(late(again), PEER, 9))[0] is RejectionReason.OUT_OF_ORDER
    assert not accepted(station.report(at(10, 50), PEER, 10)).changed


def test_a_session_belongs_to_who_opened_it() -> None:
    """Another address is foreign while it lives, and may have the name afterwards."""
    station = Station(Policy())
    accepted(station.report(at(1, 50), PEER, 1))
    theirs = dataclasses.replace(at(2, 50), flows=())
    assert rejected(station.report(theirs, OTHER, 2)) == (RejectionReason.FOREIGN, "session_id")
    assert [e.session_id for e in station.expire(6.1)] == ["s1"]
    assert accepted(station.report(theirs, OTHER, 7)).opened


def test_a_foreign_flow_rejects_the_report_and_keeps_the_session() -> None:
    """The whole report does not count; the next good one does."""
    station = Station(Policy())
    accepted(station.report(at(1, 50), PEER, 1))
    foreign = dataclasses.replace(
        at(2, 5), flows=(dataclasses.replace(at(2, 5).flows[0], client=parse_address("8.8.8.8")),)
    )
    assert rejected(station.report(foreign, PEER, 2)) == (RejectionReason.FOREIGN, "flows.client_address")
    assert not accepted(station.report(at(2, 50), PEER, 2)).assessment.critical


def test_silence_ends_a_session_with_its_reason() -> None:
    """After report_timeout_s, not before; the reason says so."""
    station = Station(Policy(report_timeout_s=5.0))
    station.report(at(1, 50), PEER, 1.0)
    assert station.expire(5.9) == []
    (ended,) = station.expire(6.0)
    assert (ended.session_id, ended.reason) == ("s1", "no report for 5 s")
    assert len(station) == 0


def test_a_session_that_comes_back_is_known() -> None:
    """Silence ends protection, not memory: it goes on as critical as it was, whatever its numbers."""
    station = Station(Policy())
    station.report(at(1, 10), PEER, 1.0)
    station.expire(7.0)
    back = accepted(station.report(at(0, 25), PEER, 8.0))
    assert back.opened
    assert back.assessment.critical
    assert back.changed


def test_the_viewer_who_leaves_ends_the_session() -> None:
    """QUIT is assessed as not critical and ends the session at once."""
    station = Station(Policy())
    station.report(at(1, 10), PEER, 1.0)
    left = accepted(station.report(at(2, 10, player_state=PlayerState.QUIT), PEER, 2.0))
    assert left.ended is not None
    assert left.changed
    assert not left.assessment.critical
    assert len(station) == 0


def test_sessions_of_one_address_are_limited() -> None:
    """One address more than its share is refused; the others are not disturbed, nor are its own."""
    station = Station(Policy(max_sessions_per_address=2, max_sessions=3))
    mine = [dataclasses.replace(at(1, 50), session_id=f"s{i}") for i in range(3)]
    accepted(station.report(mine[0], PEER, 1))
    accepted(station.report(mine[1], PEER, 1))
    assert rejected(station.report(mine[2], PEER, 1)) == (RejectionReason.TOO_MANY, "session_id")
    theirs = [dataclasses.replace(at(1, 50), session_id=f"t{i}", flows=()) for i in range(2)]
    accepted(station.report(theirs[0], OTHER, 1))
    assert rejected(station.report(theirs[1], OTHER, 1)) == (RejectionReason.TOO_MANY, "session_id")
    accepted(station.report(dataclasses.replace(at(2, 50), session_id="s0"), PEER, 2))


def test_reports_of_one_address_are_limited() -> None:
    """Two seconds' worth at once, then the rate; another address has its own budget."""
    station = Station(Policy(max_reports_per_s_per_address=10))
    admitted = [station.admit(PEER, 0.0) is None for _ in range(25)]
    assert admitted == [True] * 20 + [False] * 5
    assert station.admit(OTHER, 0.0) is None
    assert station.admit(PEER, 0.05) is not None
    assert station.admit(PEER, 0.15) is None
    station.expire(60.0)
    assert station.admit(PEER, 60.0) is None


def test_large_messages_count_as_many() -> None:
    """An address cannot hide in a few large messages: their bytes count."""
    station = Station(Policy(max_reports_per_s_per_address=100))
    admitted = [station.admit(PEER, 0.0, 360_000) is None for _ in range(5)]
    assert admitted == [True, True, True, False, False]
    assert station.admit(OTHER, 0.0, 360_000) is None
