"""From JSON to words: a body becomes values, a value becomes a report, or an error that names the field."""

from __future__ import annotations

from typing import Any, Final, cast

from pydantic import ValidationError
from pydantic_core import from_json

from steerline_appstation.core.station import Rejected, RejectionReason
from steerline_appstation.settings_errors import problems
from steerline_appstation.web.models import MAX_REPORTS, MediaServer, Report
from steerline_contract.errors import InvalidValueError
from steerline_contract.flows import TCP, UDP, FiveTuple, parse_address
from steerline_contract.limits import MAX_SESSION_ID_LENGTH
from steerline_contract.playback import PlaybackReport, PlayerState, ReportCause

_UNKNOWN_PORT: Final = 0


def reports_of(body: bytes) -> list[object]:
    """The reports of a body, not looked at yet. Raises InvalidValueError (field "body" or "reports")."""
    try:
        value: object = from_json(body, allow_inf_nan=False, cache_strings=False)
    except ValueError as error:
        raise InvalidValueError("body", "not JSON", f'{{"reports": [...]}} in JSON: {error}') from None
    reports = cast("dict[str, object]", value).get("reports") if isinstance(value, dict) else None
    if not isinstance(reports, list):
        raise InvalidValueError("body", "without reports", f'{{"reports": [1 to {MAX_REPORTS} reports]}}')
    found = cast("list[object]", reports)
    if not 1 <= len(found) <= MAX_REPORTS:
        raise InvalidValueError("reports", f"{len(found)} reports", f"1 to {MAX_REPORTS}")
    return found


def session_id_of(value: object) -> str:
    """The session id that a wrong report gives, for the answer; cut, "" where there is none."""
    name = cast("dict[str, object]", value).get("session_id") if isinstance(value, dict) else None
    return name[:MAX_SESSION_ID_LENGTH] if isinstance(name, str) else ""


def report_of(value: object) -> PlaybackReport | Rejected:
    """One report in words; else what is wrong with it first."""
    if not isinstance(value, dict):
        return Rejected(RejectionReason.INVALID, "report", "report is no object; allowed: an object")
    try:
        report = Report.model_validate(cast("dict[str, Any]", value))
        return _words(report)
    except ValidationError as error:
        field, line = next(iter(problems(error, Report, "a field of a report")))
        return Rejected(RejectionReason.INVALID, field, line)
    except InvalidValueError as error:
        return Rejected(RejectionReason.INVALID, error.field, str(error))


def _words(report: Report) -> PlaybackReport:
    return PlaybackReport(
        session_id=report.session_id,
        sequence_number=report.sequence_number,
        timestamp_ms=report.timestamp_ms,
        cause=ReportCause[report.cause],
        player_state=PlayerState[report.player_state],
        buffer_length_ms=report.buffer_length_ms,
        encoded_bitrate_kbps=report.encoded_bitrate_kbps,
        target_buffer_ms=report.target_buffer_ms,
        starved=report.starved,
        playback_rate=report.playback_rate,
        remaining_media_ms=report.remaining_media_ms,
        flows=tuple(dict.fromkeys(flow for server in report.servers for flow in _flows(server))),
        stall_count=report.stall_count,
        stall_duration_ms=report.stall_duration_ms,
        player_name=report.player_name,
    )


def _flows(server: MediaServer) -> tuple[FiveTuple, FiveTuple]:
    """What may run to this server: TCP to the URL's port, or QUIC to whatever port Alt-Svc said."""
    address = parse_address(server.address, "servers.address")
    nobody = parse_address("0.0.0.0" if address.version == 4 else "::")
    return (
        FiveTuple(TCP, nobody, _UNKNOWN_PORT, address, server.port),
        FiveTuple(UDP, nobody, _UNKNOWN_PORT, address, _UNKNOWN_PORT),
    )
