"""The answers that go down an agent's stream."""

from __future__ import annotations

from steerline.report.v1 import report_pb2
from steerline_appstation.core.station import Rejected
from steerline_contract import wire
from steerline_contract.limits import MAX_SESSION_ID_LENGTH
from steerline_contract.steering import Assessment, Decision, NetworkAdvice

MAX_MESSAGE_LENGTH = 500

Response = report_pb2.ReportResponse


def acknowledgement(session_id: str, sequence_number: int) -> report_pb2.ReportResponse:
    """The report counts."""
    return report_pb2.ReportResponse(
        acknowledgement=report_pb2.Acknowledgement(session_id=session_id, sequence_number=sequence_number)
    )


def rejection(rejected: Rejected, session_id: str, sequence_number: int) -> report_pb2.ReportResponse:
    """The report does not count, and why."""
    return report_pb2.ReportResponse(
        rejection=report_pb2.Rejection(
            session_id=session_id[:MAX_SESSION_ID_LENGTH],
            sequence_number=sequence_number,
            reason=report_pb2.RejectionReason.ValueType(rejected.reason.value),
            field=rejected.field,
            message=rejected.message[:MAX_MESSAGE_LENGTH],
        )
    )


def assessment(value: Assessment) -> report_pb2.ReportResponse:
    """What the station thinks of a session."""
    return report_pb2.ReportResponse(assessment=wire.assessment_message(value))


def decision(value: Decision) -> report_pb2.ReportResponse:
    """What the controller decided for a session."""
    return report_pb2.ReportResponse(decision=wire.decision_message(value))


def advice(value: NetworkAdvice) -> report_pb2.ReportResponse:
    """The rate that a session can sustain."""
    return report_pb2.ReportResponse(advice=wire.advice_message(value))
