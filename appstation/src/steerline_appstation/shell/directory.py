"""What REST and history show of each live session, beside what the core decides by."""

from __future__ import annotations

from dataclasses import dataclass

from steerline_appstation.store.records import FlowRecord, SessionRecord
from steerline_contract.flows import IPAddress
from steerline_contract.playback import PlaybackReport
from steerline_contract.steering import Assessment


@dataclass(slots=True)
class Listing:
    """One session's last report and assessment. Mutable: it is replaced at each report."""

    peer: IPAddress
    first_seen_s: float
    last_seen_s: float
    report: PlaybackReport
    # When `report` came, if it was a live one.
    reported_s: float | None = None
    report_count: int = 0
    assessment: Assessment | None = None
    target_s: float | None = None
    assessed_sent_s: float = 0.0
    ended_reason: str = ""
    live: bool = True

    def time_of(self, late: PlaybackReport, now_s: float) -> float:
        """When a replayed report was made, by the station's clock: agents' clocks are often wrong."""
        if self.reported_s is None:
            return min(now_s, late.timestamp_ms / 1000)
        return min(now_s, self.reported_s + (late.timestamp_ms - self.report.timestamp_ms) / 1000)

    def record(self) -> SessionRecord:
        """As it is now. Built only where somebody asks."""
        report, assessment = self.report, self.assessment
        return SessionRecord(
            session_id=report.session_id,
            address=str(self.peer),
            player_name=report.player_name,
            live=self.live,
            ended_reason=self.ended_reason,
            first_seen_s=self.first_seen_s,
            last_seen_s=self.last_seen_s,
            report_count=self.report_count,
            player_state=report.player_state.name,
            buffer_length_ms=report.buffer_length_ms,
            critical=assessment.critical and self.live if assessment else False,
            time_to_empty_ms=assessment.time_to_empty_ms if assessment else None,
            need_bps=assessment.need_bps if assessment else 0,
            play_bps=assessment.play_bps if assessment else 0,
            low_ms=assessment.low_ms if assessment else 0,
            high_ms=assessment.high_ms if assessment else 0,
            target_buffer_ms=None if self.target_s is None else round(self.target_s * 1000),
            stall_count=report.stall_count,
            stall_duration_ms=report.stall_duration_ms,
            flows=[FlowRecord.of(flow) for flow in assessment.flows] if assessment else [],
            translated=assessment.translated if assessment else False,
            reason=assessment.reason if assessment else "",
        )
