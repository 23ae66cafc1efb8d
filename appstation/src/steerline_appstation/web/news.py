"""What the station and the controller say, in the web's words."""

from __future__ import annotations

from typing import Literal, cast

from steerline.flow.v1 import flow_pb2
from steerline.report.v1 import report_pb2
from steerline_appstation.core.station import Rejected
from steerline_appstation.shell.replies import MAX_MESSAGE_LENGTH
from steerline_appstation.web.models import AdviceNews, AssessmentNews, DecisionNews, News, RejectionNews
from steerline_contract.limits import MAX_REASON_LENGTH

_KINDS = {
    flow_pb2.DECISION_KIND_STEER: "STEER",
    flow_pb2.DECISION_KIND_KEEP: "KEEP",
    flow_pb2.DECISION_KIND_RELEASE: "RELEASE",
}


def of(response: report_pb2.ReportResponse) -> News | None:
    """One message as news; None for what the web has no word for."""
    match response.WhichOneof("message"):
        case "assessment":
            assessment = response.assessment
            return AssessmentNews(session_id=assessment.session_id, critical=assessment.critical)
        case "advice":
            advice = response.advice
            return AdviceNews(
                session_id=advice.session_id,
                sustainable_kbps=advice.sustainable_bps // 1000,
                reason=advice.reason[:MAX_REASON_LENGTH],
            )
        case "decision":
            decision = response.decision
            return DecisionNews(
                session_id=decision.session_id,
                kind=cast("Literal['STEER', 'KEEP', 'RELEASE']", _KINDS[decision.kind]),
                from_line=decision.from_line[:MAX_REASON_LENGTH],
                to_line=decision.to_line[:MAX_REASON_LENGTH],
                time_s=decision.time_s,
                reason=decision.reason[:MAX_REASON_LENGTH],
            )
        case _:
            return None


def rejection(rejected: Rejected, session_id: str) -> RejectionNews:
    """A report does not count, and why."""
    return RejectionNews(
        session_id=session_id, field=rejected.field, message=rejected.message[:MAX_MESSAGE_LENGTH]
    )
