"""The words: frozen, born valid, and the same after a trip over the wire."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerline.flow.v1 import flow_pb2
from steerline.report.v1 import report_pb2
from steerline_contract import limits, wire
from steerline_contract.errors import InvalidValueError
from steerline_contract.flows import FiveTuple, LineState, LineStatus, Link, parse_address
from steerline_contract.playback import PlaybackReport, PlayerState, ReportCause
from steerline_contract.steering import Assessment, Decision, DecisionKind, NetworkAdvice

ports = st.integers(1, 65535)
protocols = st.sampled_from([6, 17])
tuples = st.one_of(
    st.builds(FiveTuple, protocols, st.ip_addresses(v=4), ports, st.ip_addresses(v=4), ports),
    st.builds(FiveTuple, protocols, st.ip_addresses(v=6), ports, st.ip_addresses(v=6), ports),
).filter(lambda t: all(not (a.version == 6 and a.ipv4_mapped) for a in (t.client, t.server)))
session_ids = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)
reports = st.builds(
    PlaybackReport,
    session_id=session_ids,
    sequence_number=st.integers(1, 2**63),
    timestamp_ms=st.integers(0, limits.YEAR_2100_MS),
    cause=st.sampled_from(ReportCause),
    player_state=st.sampled_from(PlayerState),
    buffer_length_ms=st.integers(0, limits.DAY_MS),
    encoded_bitrate_kbps=st.integers(0, limits.MAX_KBPS),
    top_bitrate_kbps=st.integers(0, limits.MAX_KBPS),
    target_buffer_ms=st.integers(0, limits.DAY_MS),
    measured_throughput_kbps=st.integers(0, limits.MAX_KBPS),
    starved=st.booleans(),
    playback_rate=st.floats(0, limits.MAX_PLAYBACK_RATE),
    remaining_media_ms=st.none() | st.integers(0, limits.DAY_MS),
    flows=st.lists(tuples, max_size=5, unique=True).map(tuple),
    stall_count=st.integers(0, 2**32 - 1),
    stall_duration_ms=st.integers(0, limits.DAY_MS),
    player_name=st.text("abc.-", max_size=64),
)


@given(reports)
def test_a_report_survives_the_wire(report: PlaybackReport) -> None:
    """decode(encode(x)) == x."""
    data = wire.playback_report_message(report).SerializeToString()
    assert wire.playback_report(report_pb2.PlaybackReport.FromString(data)) == report


@given(
    st.builds(
        Assessment,
        session_id=session_ids,
        player_state=st.sampled_from(PlayerState),
        buffer_length_ms=st.integers(0, limits.DAY_MS),
        critical=st.booleans(),
        need_bps=st.integers(0, limits.MAX_BPS),
        play_bps=st.integers(0, limits.MAX_BPS),
        low_ms=st.integers(0, limits.DAY_MS),
        high_ms=st.integers(0, limits.DAY_MS),
        time_to_live_ms=st.integers(1, 600_000),
        time_to_empty_ms=st.none() | st.integers(0, limits.DAY_MS),
        flows=st.lists(tuples, max_size=5).map(tuple),
        translated=st.booleans(),
        reason=st.text(max_size=100),
        received_monotonic_ns=st.integers(0, 2**62),
    )
)
def test_an_assessment_survives_the_wire(value: Assessment) -> None:
    """decode(encode(x)) == x."""
    assert wire.assessment(wire.assessment_message(value)) == value


@given(
    st.builds(
        Decision,
        kind=st.sampled_from(DecisionKind),
        time_s=st.floats(0, 4e9),
        site=st.text(max_size=10),
        reason=st.text(max_size=100),
        strategy=st.text(max_size=10),
        session_id=st.text(max_size=10),
        flow=st.none() | tuples,
        from_line=st.text(max_size=10),
        to_line=st.text(max_size=10),
    )
)
def test_a_decision_survives_the_wire(value: Decision) -> None:
    """decode(encode(x)) == x."""
    assert wire.decision(wire.decision_message(value)) == value


def test_line_states_and_advice_survive_the_wire() -> None:
    """decode(encode(x)) == x, for every status."""
    for status in LineStatus:
        state = LineState("home", "line1", 10_000_000, status, 1, 2, 3, ("a", "b"))
        assert wire.line_state(wire.line_state_message(state)) == state
    advice = NetworkAdvice("s", 1_000, "because")
    assert wire.advice(wire.advice_message(advice)) == advice


def good() -> report_pb2.PlaybackReport:
    return report_pb2.PlaybackReport(
        session_id="s", sequence_number=1, timestamp_ms=1, cause=1, player_state=2, playback_rate=1.0  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("session_id", "", "1 to 64"),
        ("session_id", "x" * 1_000_000, "1 to 64"),
        ("session_id", "a b", "A-Z"),
        ("sequence_number", 0, "1 or more"),
        ("timestamp_ms", -1, "0 to"),
        ("timestamp_ms", 2**62, "0 to"),
        ("cause", 99, "PERIODIC"),
        ("cause", 0, "PERIODIC"),
        ("player_state", 42, "PLAYING"),
        ("player_state", 0, "PLAYING"),
        ("buffer_length_ms", -1, "0 to 86400000 ms"),
        ("buffer_length_ms", 2**40, "0 to 86400000 ms"),
        ("encoded_bitrate_kbps", -5, "kbit/s"),
        ("playback_rate", float("nan"), "0 to 16"),
        ("playback_rate", float("inf"), "0 to 16"),
        ("playback_rate", -1.0, "0 to 16"),
        ("remaining_media_ms", -1, "ms"),
        ("player_name", "x" * 65, "64"),
        ("player_name", "a\nb", "printable"),
    ],
)
def test_a_wrong_value_is_named_with_the_allowed_range(field: str, value: object, allowed: str) -> None:
    """The error carries the field, and what is allowed, and is short whatever came in."""
    message = good()
    setattr(message, field, value)
    with pytest.raises(InvalidValueError) as caught:
        wire.playback_report(message)
    assert caught.value.field == field
    assert allowed in str(caught.value)
    assert len(str(caught.value)) < 400


def test_ten_thousand_tuples_are_refused_before_they_are_read() -> None:
    """At most 32 five-tuples in a report."""
    message = good()
    for _ in range(10_000):
        message.flows.add(protocol=6, server_address="nonsense")
    with pytest.raises(InvalidValueError, match="10000 five-tuples"):
        wire.playback_report(message)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"protocol": 1}, "flows.protocol"),
        ({"server_address": ""}, "flows.server_address"),
        ({"server_address": "www.example.org"}, "flows.server_address"),
        ({"server_address": "fe80::1%eth0"}, "flows.server_address"),
        ({"client_address": "::1"}, "flows.client_address"),
        ({"client_port": 70000}, "flows.client_port"),
        ({"server_port": 0}, "flows.server_port"),
    ],
)
def test_a_wrong_tuple_is_named(change: dict[str, object], field: str) -> None:
    """Each part of a five-tuple has its range."""
    values: dict[str, object] = {
        "protocol": 6, "client_address": "198.18.1.1", "client_port": 4, "server_address": "198.19.0.1",
        "server_port": 80,
    } | change  # fmt: skip
    message = good()
    message.flows.append(flow_pb2.FiveTuple(**values))  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError) as caught:
        wire.playback_report(message)
    assert caught.value.field == field


@given(st.binary(max_size=200))
def test_any_bytes_are_a_report_or_a_clear_error(data: bytes) -> None:
    """Whatever protobuf can read is either a report or an InvalidValueError."""
    from google.protobuf.message import DecodeError

    try:
        message = report_pb2.PlaybackReport.FromString(data)
    except DecodeError:
        return
    try:
        wire.playback_report(message)
    except InvalidValueError as error:
        assert error.field
        assert error.allowed


def test_mapped_addresses_are_the_ipv4_they_mean() -> None:
    """A dual-stack socket's ::ffff:a.b.c.d is a.b.c.d."""
    assert parse_address("::ffff:198.18.1.1") == ipaddress.ip_address("198.18.1.1")


@pytest.mark.parametrize("capacity", [0, -1, 10**12])
def test_a_line_has_a_sane_capacity(capacity: int) -> None:
    """Refused with the line's name and the range."""
    with pytest.raises(InvalidValueError, match="line1"):
        Link("line1", capacity)
