"""The one place where protobuf messages become words, and words messages.

Everything that comes from outside is checked here, once: a wrong value raises InvalidValueError
with the field, the value and the allowed range.
"""

from __future__ import annotations

import math
import re
from typing import Final

from steerline.flow.v1 import flow_pb2
from steerline.report.v1 import report_pb2
from steerline.steering.v1 import steering_pb2
from steerline_contract.errors import InvalidValueError
from steerline_contract.flows import TCP, UDP, FiveTuple, LineState, LineStatus, parse_address
from steerline_contract.limits import (
    DAY_MS,
    MAX_BPS,
    MAX_FLOWS,
    MAX_KBPS,
    MAX_NAME_LENGTH,
    MAX_PLAYBACK_RATE,
    MAX_REASON_LENGTH,
    MAX_SESSION_ID_LENGTH,
    YEAR_2100_MS,
)
from steerline_contract.playback import PlaybackReport, PlayerState, ReportCause
from steerline_contract.steering import Assessment, Decision, DecisionKind, Enforced, NetworkAdvice

_SESSION_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

# field of PlaybackReport: (least, greatest, unit)
_REPORT_RANGES: Final[dict[str, tuple[int, int, str]]] = {
    "timestamp_ms": (0, YEAR_2100_MS, "ms since the epoch"),
    "buffer_length_ms": (0, DAY_MS, "ms"),
    "encoded_bitrate_kbps": (0, MAX_KBPS, "kbit/s"),
    "top_bitrate_kbps": (0, MAX_KBPS, "kbit/s"),
    "target_buffer_ms": (0, DAY_MS, "ms"),
    "measured_throughput_kbps": (0, MAX_KBPS, "kbit/s"),
    "stall_duration_ms": (0, 30 * DAY_MS, "ms"),
}


def session_id(text: str) -> str:
    """Checks a session id. Raises InvalidValueError."""
    if not _SESSION_ID.fullmatch(text):
        raise InvalidValueError(
            "session_id", text[: MAX_SESSION_ID_LENGTH + 1], "1 to 64 of A-Z a-z 0-9 . _ -"
        )
    return text


def _in_range(field: str, value: int, least: int, greatest: int, unit: str) -> int:
    if not least <= value <= greatest:
        raise InvalidValueError(field, value, f"{least} to {greatest} {unit}")
    return value


def _player_state(value: int) -> PlayerState:
    try:
        return PlayerState(value)
    except ValueError:
        raise InvalidValueError(
            "player_state", value, ", ".join(f"{s.value} ({s.name})" for s in PlayerState)
        ) from None


# ---------------------------------------------------------------- five-tuples


def five_tuple(message: flow_pb2.FiveTuple, least_server_port: int = 1) -> FiveTuple:
    """A five-tuple as an agent sends it.

    The server's address is needed, and from an agent its port (a station may not know it: 0). The
    client's port may be 0 (not known to the agent); its address may be empty, and is then the
    unspecified address of the server's family.
    """
    if message.protocol not in (TCP, UDP):
        raise InvalidValueError("flows.protocol", message.protocol, "6 (TCP) or 17 (UDP)")
    server = parse_address(message.server_address, "flows.server_address")
    unspecified = "0.0.0.0" if server.version == 4 else "::"
    client = parse_address(message.client_address or unspecified, "flows.client_address")
    if client.version != server.version:
        raise InvalidValueError(
            "flows.client_address", message.client_address, f"an IPv{server.version} address as the server's"
        )
    _in_range("flows.client_port", message.client_port, 0, 65535, "(0: not known)")
    _in_range("flows.server_port", message.server_port, least_server_port, 65535, "")
    return FiveTuple(message.protocol, client, message.client_port, server, message.server_port)


def flow(message: flow_pb2.FiveTuple) -> FiveTuple:
    """A five-tuple of any protocol, as services tell each other."""
    return FiveTuple(
        message.protocol,
        parse_address(message.client_address, "flow.client_address"),
        message.client_port,
        parse_address(message.server_address, "flow.server_address"),
        message.server_port,
    )


def flow_message(value: FiveTuple) -> flow_pb2.FiveTuple:
    """The message of a five-tuple."""
    return flow_pb2.FiveTuple(
        protocol=value.protocol,
        client_address=str(value.client),
        client_port=value.client_port,
        server_address=str(value.server),
        server_port=value.server_port,
    )


# ---------------------------------------------------------------- reports


def playback_report(message: report_pb2.PlaybackReport) -> PlaybackReport:
    """A report as it comes from a client. Raises InvalidValueError."""
    name = session_id(message.session_id)
    if message.sequence_number < 1:
        raise InvalidValueError("sequence_number", message.sequence_number, "1 or more")
    try:
        cause = ReportCause(message.cause)
    except ValueError:
        raise InvalidValueError(
            "cause", message.cause, ", ".join(f"{c.value} ({c.name})" for c in ReportCause)
        ) from None
    state = _player_state(message.player_state)
    for field, (least, greatest, unit) in _REPORT_RANGES.items():
        _in_range(field, getattr(message, field), least, greatest, unit)
    remaining = None
    if message.HasField("remaining_media_ms"):
        remaining = _in_range("remaining_media_ms", message.remaining_media_ms, 0, 365 * DAY_MS, "ms")
    rate = message.playback_rate
    if not math.isfinite(rate) or not 0 <= rate <= MAX_PLAYBACK_RATE:
        raise InvalidValueError("playback_rate", rate, f"0 to {MAX_PLAYBACK_RATE:g}")
    if len(message.flows) > MAX_FLOWS:
        raise InvalidValueError("flows", f"{len(message.flows)} five-tuples", f"at most {MAX_FLOWS}")
    if len(message.player_name) > MAX_NAME_LENGTH or not message.player_name.isprintable():
        raise InvalidValueError(
            "player_name", message.player_name[:65], f"at most {MAX_NAME_LENGTH} printable characters"
        )
    return PlaybackReport(
        session_id=name,
        sequence_number=message.sequence_number,
        timestamp_ms=message.timestamp_ms,
        cause=cause,
        player_state=state,
        buffer_length_ms=message.buffer_length_ms,
        encoded_bitrate_kbps=message.encoded_bitrate_kbps,
        top_bitrate_kbps=message.top_bitrate_kbps,
        target_buffer_ms=message.target_buffer_ms,
        measured_throughput_kbps=message.measured_throughput_kbps,
        starved=message.starved,
        playback_rate=rate,
        remaining_media_ms=remaining,
        flows=tuple(dict.fromkeys(five_tuple(f) for f in message.flows)),
        stall_count=message.stall_count,
        stall_duration_ms=message.stall_duration_ms,
        player_name=message.player_name,
    )


def playback_report_message(value: PlaybackReport) -> report_pb2.PlaybackReport:
    """The message of a report (for tests, replay and load)."""
    message = report_pb2.PlaybackReport(
        session_id=value.session_id,
        sequence_number=value.sequence_number,
        timestamp_ms=value.timestamp_ms,
        cause=report_pb2.ReportCause.ValueType(value.cause.value),
        player_state=flow_pb2.PlayerState.ValueType(value.player_state.value),
        buffer_length_ms=value.buffer_length_ms,
        encoded_bitrate_kbps=value.encoded_bitrate_kbps,
        top_bitrate_kbps=value.top_bitrate_kbps,
        target_buffer_ms=value.target_buffer_ms,
        measured_throughput_kbps=value.measured_throughput_kbps,
        starved=value.starved,
        playback_rate=value.playback_rate,
        flows=[flow_message(f) for f in value.flows],
        stall_count=value.stall_count,
        stall_duration_ms=value.stall_duration_ms,
        player_name=value.player_name,
    )
    if value.remaining_media_ms is not None:
        message.remaining_media_ms = value.remaining_media_ms
    return message


# ---------------------------------------------------------------- assessments


def assessment(message: flow_pb2.Assessment) -> Assessment:
    """An assessment as it comes from the station. Raises InvalidValueError."""
    if len(message.flows) > 4 * MAX_FLOWS:
        raise InvalidValueError("flows", f"{len(message.flows)} five-tuples", f"at most {4 * MAX_FLOWS}")
    return Assessment(
        session_id=session_id(message.session_id),
        player_state=_player_state(message.player_state),
        buffer_length_ms=_in_range("buffer_length_ms", message.buffer_length_ms, 0, DAY_MS, "ms"),
        critical=message.critical,
        need_bps=_in_range("need_bps", message.need_bps, 0, MAX_BPS, "bit/s"),
        play_bps=_in_range("play_bps", message.play_bps, 0, MAX_BPS, "bit/s"),
        low_ms=_in_range("low_ms", message.low_ms, 0, DAY_MS, "ms"),
        high_ms=_in_range("high_ms", message.high_ms, 0, DAY_MS, "ms"),
        time_to_live_ms=_in_range("time_to_live_ms", message.time_to_live_ms, 1, 600_000, "ms"),
        time_to_empty_ms=message.time_to_empty_ms if message.HasField("time_to_empty_ms") else None,
        flows=tuple(five_tuple(f, least_server_port=0) for f in message.flows),
        translated=message.translated,
        reason=message.reason[:MAX_REASON_LENGTH],
        received_monotonic_ns=message.received_monotonic_ns,
    )


def assessment_message(value: Assessment) -> flow_pb2.Assessment:
    """The message of an assessment."""
    message = flow_pb2.Assessment(
        session_id=value.session_id,
        player_state=flow_pb2.PlayerState.ValueType(value.player_state.value),
        buffer_length_ms=value.buffer_length_ms,
        critical=value.critical,
        need_bps=value.need_bps,
        play_bps=value.play_bps,
        low_ms=value.low_ms,
        high_ms=value.high_ms,
        time_to_live_ms=value.time_to_live_ms,
        flows=[flow_message(f) for f in value.flows],
        translated=value.translated,
        reason=value.reason,
        received_monotonic_ns=value.received_monotonic_ns,
    )
    if value.time_to_empty_ms is not None:
        message.time_to_empty_ms = value.time_to_empty_ms
    return message


# ---------------------------------------------------------------- decisions


def decision(message: flow_pb2.Decision) -> Decision:
    """A decision as it comes from the controller. Raises InvalidValueError."""
    try:
        kind = DecisionKind(message.kind)
    except ValueError:
        raise InvalidValueError(
            "kind", message.kind, ", ".join(f"{k.value} ({k.name})" for k in DecisionKind)
        ) from None
    return Decision(
        kind=kind,
        time_s=message.time_s,
        site=message.site,
        reason=message.reason[:MAX_REASON_LENGTH],
        strategy=message.strategy,
        session_id=message.session_id,
        flow=flow(message.flow) if message.HasField("flow") else None,
        from_line=message.from_line,
        to_line=message.to_line,
    )


def decision_message(value: Decision) -> flow_pb2.Decision:
    """The message of a decision."""
    message = flow_pb2.Decision(
        kind=flow_pb2.DecisionKind.ValueType(value.kind.value),
        time_s=value.time_s,
        site=value.site,
        session_id=value.session_id,
        from_line=value.from_line,
        to_line=value.to_line,
        reason=value.reason,
        strategy=value.strategy,
    )
    if value.flow is not None:
        message.flow.CopyFrom(flow_message(value.flow))
    return message


def advice(message: flow_pb2.NetworkAdvice) -> NetworkAdvice:
    """An advice as it comes from the controller. Raises InvalidValueError."""
    return NetworkAdvice(
        session_id=session_id(message.session_id),
        sustainable_bps=_in_range("sustainable_bps", message.sustainable_bps, 0, MAX_BPS, "bit/s"),
        reason=message.reason[:MAX_REASON_LENGTH],
    )


def advice_message(value: NetworkAdvice) -> flow_pb2.NetworkAdvice:
    """The message of an advice."""
    return flow_pb2.NetworkAdvice(
        session_id=value.session_id, sustainable_bps=value.sustainable_bps, reason=value.reason
    )


def line_state(message: flow_pb2.LineState) -> LineState:
    """A line's state as it comes from the controller. Raises InvalidValueError."""
    try:
        status = LineStatus(message.status)
    except ValueError:
        raise InvalidValueError(
            "status", message.status, ", ".join(f"{s.value} ({s.name})" for s in LineStatus)
        ) from None
    return LineState(
        site=message.site,
        line=message.line,
        capacity_bps=message.capacity_bps,
        status=status,
        down_bps=message.down_bps,
        up_bps=message.up_bps,
        flow_count=message.flow_count,
        protected_session_ids=tuple(message.protected_session_ids),
    )


def line_state_message(value: LineState) -> flow_pb2.LineState:
    """The message of a line's state."""
    return flow_pb2.LineState(
        site=value.site,
        line=value.line,
        capacity_bps=value.capacity_bps,
        status=flow_pb2.LineStatus.ValueType(value.status.value),
        down_bps=value.down_bps,
        up_bps=value.up_bps,
        flow_count=value.flow_count,
        protected_session_ids=value.protected_session_ids,
    )


def enforced(message: steering_pb2.Enforced) -> Enforced:
    """A confirmation as it comes from the controller."""
    return Enforced(
        session_id=message.session_id,
        received_monotonic_ns=message.received_monotonic_ns,
        enforced_monotonic_ns=message.enforced_monotonic_ns,
        moved_flow_count=message.moved_flow_count,
    )


def enforced_message(value: Enforced) -> steering_pb2.Enforced:
    """The message of a confirmation."""
    return steering_pb2.Enforced(
        session_id=value.session_id,
        received_monotonic_ns=value.received_monotonic_ns,
        enforced_monotonic_ns=value.enforced_monotonic_ns,
        moved_flow_count=value.moved_flow_count,
    )
