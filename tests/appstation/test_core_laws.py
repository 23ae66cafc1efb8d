"""Laws of the core, whatever the reports."""

from __future__ import annotations

import dataclasses
import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steerline_appstation.core.addresses import Attributed
from steerline_appstation.core.buffer import Trend
from steerline_appstation.core.policy import Policy
from steerline_appstation.core.session import WANTS_MEDIA, Session
from steerline_appstation.core.station import Accepted, History, Rejected, Station
from steerline_contract import limits, wire
from steerline_contract.flows import FiveTuple, IPAddress, parse_address
from steerline_contract.playback import PlaybackReport, PlayerState, ReportCause

from .words import at

PEERS = [parse_address(a) for a in ("198.18.1.11", "198.18.1.12", "198.18.2.1", "fd5e:1::11")]
CLIENTS = [*PEERS, *(parse_address(a) for a in ("0.0.0.0", "::", "192.168.1.7", "8.8.8.8", "fd00::1"))]


def flow_of(client: IPAddress, port: int) -> FiveTuple:
    server = parse_address("198.19.0.1" if client.version == 4 else "2001:db8::80")
    return FiveTuple(6, client, port, server, 443)


flows = st.lists(
    st.builds(flow_of, st.sampled_from(CLIENTS), st.integers(0, 65535)), max_size=4, unique=True
).map(tuple)
reports = st.builds(
    PlaybackReport,
    session_id=st.sampled_from(["a", "b", "c"]),
    sequence_number=st.integers(1, 40),
    timestamp_ms=st.integers(0, 30_000),
    cause=st.sampled_from(ReportCause),
    player_state=st.sampled_from(PlayerState),
    buffer_length_ms=st.one_of(st.integers(0, 60_000), st.integers(0, limits.DAY_MS)),
    encoded_bitrate_kbps=st.integers(0, limits.MAX_KBPS),
    top_bitrate_kbps=st.integers(0, limits.MAX_KBPS),
    target_buffer_ms=st.one_of(st.just(0), st.integers(0, limits.DAY_MS)),
    measured_throughput_kbps=st.integers(0, limits.MAX_KBPS),
    starved=st.booleans(),
    playback_rate=st.floats(0, limits.MAX_PLAYBACK_RATE),
    remaining_media_ms=st.none() | st.integers(0, 365 * limits.DAY_MS),
    flows=flows,
)
levels = st.lists(st.tuples(st.integers(0, 60_000), st.sampled_from(PlayerState)), min_size=1, max_size=60)


@given(st.lists(st.tuples(reports, st.sampled_from(PEERS), st.floats(0, 3)), max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_order_of_reports_has_an_outcome(said: list[tuple[PlaybackReport, IPAddress, float]]) -> None:
    """Nothing raises; every assessment can be put on the wire and read back; limits hold."""
    policy = Policy(customer_networks=(ipaddress.ip_network("198.18.0.0/16"),), max_sessions_per_address=2)
    station = Station(policy)
    now_s = 0.0
    for report, peer, wait_s in said:
        now_s += wait_s
        station.expire(now_s)
        outcome = station.report(report, peer, now_s)
        assert isinstance(outcome, Accepted | History | Rejected)
        if isinstance(outcome, Accepted):
            assessment = outcome.assessment
            assert wire.assessment(wire.assessment_message(assessment)) == assessment
            assert all(f.client == peer for f in assessment.flows)
        assert len(station) <= 3
    station.expire(now_s + policy.report_timeout_s)
    assert len(station) == 0


@given(st.lists(reports, max_size=30))
@settings(max_examples=200, deadline=None)
def test_a_rejected_report_leaves_no_trace(said: list[PlaybackReport]) -> None:
    """What follows a rejected report is as if it had never been sent."""
    station, clean = Station(Policy()), Station(Policy())
    for report in said:
        outcome = station.report(report, PEERS[0], 1.0)
        if not isinstance(outcome, Rejected):
            assert clean.report(report, PEERS[0], 1.0) == outcome


@given(levels)
@settings(max_examples=300, deadline=None)
def test_hysteresis_law(seen: list[tuple[int, PlayerState]]) -> None:
    """Critical is: below low since the last high, has played, and wants media now. Nothing else."""
    session = Session(Policy())
    below = played = False
    for second, (buffer_ms, state) in enumerate(seen):
        report = at(second, buffer_ms / 1000, player_state=state)
        assessment = session.assess(report, Attributed())
        played = played or state in (PlayerState.PLAYING, PlayerState.REBUFFERING)
        if buffer_ms >= 35_000:
            below = False
        elif buffer_ms < 20_000 and played:
            below = True
        assert assessment.critical is (below and played and state in WANTS_MEDIA)


@given(levels, st.integers(0, 120_000))
@settings(deadline=None)
def test_never_critical_while_paused(seen: list[tuple[int, PlayerState]], target_ms: int) -> None:
    """Whatever was before, a paused player needs no help."""
    session = Session(Policy())
    for second, (buffer_ms, state) in enumerate(seen):
        session.assess(at(second, buffer_ms / 1000, player_state=state), Attributed())
    paused = at(len(seen), 0, player_state=PlayerState.PAUSED, target_buffer_ms=target_ms)
    assert not session.assess(paused, Attributed()).critical


@given(st.integers(0, 60_000), st.integers(0, 60_000))
@settings(deadline=None)
def test_need_never_rises_with_the_buffer(one_ms: int, other_ms: int) -> None:
    """Who has more buffered needs no more, and never less than its top rate."""
    less, more = sorted((one_ms, other_ms))
    needs = [
        Session(Policy()).assess(at(1, buffer_ms / 1000), Attributed()).need_bps for buffer_ms in (less, more)
    ]
    assert needs[0] >= needs[1] >= 2_100_000


@given(st.floats(0.05, 1.0), st.floats(10, 60), st.lists(st.floats(0.2, 1.0), min_size=4, max_size=30))
@settings(deadline=None)
def test_a_steady_fall_is_read_exactly(fall: float, start_s: float, steps_s: list[float]) -> None:
    """However the samples lie in time, a straight line's time to empty is its own."""
    trend = Trend()
    time_s = 0.0
    for step_s in steps_s:
        time_s += step_s
        trend.add(time_s, start_s - fall * time_s, 1.0)
    buffer_s = start_s - fall * time_s
    assert trend.time_to_empty_s(buffer_s) == pytest.approx(buffer_s / fall, rel=1e-6, abs=1e-6)


@given(reports)
@settings(deadline=None)
def test_reports_survive_the_wire(report: PlaybackReport) -> None:
    """decode(encode(x)) == x"""
    known = dataclasses.replace(report, timestamp_ms=report.timestamp_ms + 1)
    assert wire.playback_report(wire.playback_report_message(known)) == known
