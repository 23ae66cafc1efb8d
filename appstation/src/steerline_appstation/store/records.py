"""What is stored, and what REST shows: one definition for both.

Times are seconds since the epoch by the station's clock.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from steerline_contract.flows import FiveTuple, LineState
from steerline_contract.playback import PlaybackReport
from steerline_contract.steering import Assessment, Decision


class Record(BaseModel):
    """A frozen value that becomes JSON and comes back the same."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class FlowRecord(Record):
    """A five-tuple. Client is the customer's end as the network sees it."""

    protocol: int = Field(description="IANA number: 6 TCP, 17 UDP.")
    client_address: str
    client_port: int
    server_address: str
    server_port: int

    @classmethod
    def of(cls, flow: FiveTuple) -> FlowRecord:
        """The record of a flow."""
        return cls(
            protocol=flow.protocol,
            client_address=str(flow.client),
            client_port=flow.client_port,
            server_address=str(flow.server),
            server_port=flow.server_port,
        )


class SessionRecord(Record):
    """One session as its last report left it."""

    kind: Literal["session"] = "session"
    session_id: str
    address: str = Field(description="The address its reports come from, as the station sees it.")
    player_name: str = ""
    live: bool = Field(description="False when it has ended.")
    ended_reason: str = Field("", description="Why it ended; empty while it lives.")
    first_seen_s: float = Field(description="When its first report came, seconds since the epoch.")
    last_seen_s: float = Field(description="When its last report came, seconds since the epoch.")
    report_count: int = Field(description="Reports that counted, replayed ones included.")
    player_state: str = Field(description="The player's state (CMCD sta).")
    buffer_length_ms: int = Field(description="Media ahead of the playhead (CMCD bl), ms.")
    critical: bool = Field(description="Below low was seen and high not yet again.")
    time_to_empty_ms: int | None = Field(None, description="Absent while the buffer does not fall.")
    need_bps: int = Field(0, description="What it needs from the network now, all its flows together.")
    play_bps: int = Field(0, description="What it consumes at the rate it plays at.")
    low_ms: int = 0
    high_ms: int = 0
    target_buffer_ms: int | None = Field(None, description="The buffer its player aims at; null: unknown.")
    stall_count: int = Field(0, description="Since the session began, as the player counts.")
    stall_duration_ms: int = 0
    flows: list[FlowRecord] = Field(default_factory=list[FlowRecord])
    translated: bool = Field(False, description="The agent sits behind address translation.")
    reason: str = Field("", description="The last assessment's reason.")


class Sample(Record):
    """One report of a session, and what was made of it."""

    kind: Literal["sample"] = "sample"
    session_id: str
    time_s: float = Field(description="When it came; for a replayed report, when the agent says it was made.")
    sequence_number: int
    timestamp_ms: int = Field(description="The agent's clock, ms since the epoch.")
    cause: str
    player_state: str
    buffer_length_ms: int
    encoded_bitrate_kbps: int
    measured_throughput_kbps: int = 0
    starved: bool = False
    stall_count: int = 0
    stall_duration_ms: int = 0
    critical: bool | None = Field(
        default=None, description="Null for a replayed report: it was not assessed."
    )
    time_to_empty_ms: int | None = None
    need_bps: int | None = None

    @classmethod
    def of(cls, time_s: float, report: PlaybackReport, assessment: Assessment | None) -> Sample:
        """The record of a report that counted; `assessment` is None for a replayed one."""
        return cls(
            session_id=report.session_id,
            time_s=time_s,
            sequence_number=report.sequence_number,
            timestamp_ms=report.timestamp_ms,
            cause=report.cause.name,
            player_state=report.player_state.name,
            buffer_length_ms=report.buffer_length_ms,
            encoded_bitrate_kbps=report.encoded_bitrate_kbps,
            measured_throughput_kbps=report.measured_throughput_kbps,
            starved=report.starved,
            stall_count=report.stall_count,
            stall_duration_ms=report.stall_duration_ms,
            critical=assessment.critical if assessment else None,
            time_to_empty_ms=assessment.time_to_empty_ms if assessment else None,
            need_bps=assessment.need_bps if assessment else None,
        )


class DecisionRecord(Record):
    """One decision of the controller, with its reason."""

    kind: Literal["decision"] = "decision"
    number: int = Field(description="Counts this station's decisions; tells two at one instant apart.")
    decision: str = Field(description="STEER, KEEP or RELEASE.")
    time_s: float = Field(description="When the controller decided, seconds since the epoch.")
    site: str
    session_id: str = Field(description="Empty where it is about best-effort traffic alone.")
    flow: FlowRecord | None = None
    from_line: str = ""
    to_line: str = ""
    reason: str
    strategy: str

    @classmethod
    def of(cls, number: int, decision: Decision) -> DecisionRecord:
        """The record of a decision."""
        return cls(
            number=number,
            decision=decision.kind.name,
            time_s=decision.time_s,
            site=decision.site,
            session_id=decision.session_id,
            flow=FlowRecord.of(decision.flow) if decision.flow else None,
            from_line=decision.from_line,
            to_line=decision.to_line,
            reason=decision.reason,
            strategy=decision.strategy,
        )


class LineRecord(Record):
    """One leased line as it was in one second."""

    kind: Literal["line"] = "line"
    time_s: float = Field(description="When the controller's word of it came, seconds since the epoch.")
    site: str
    line: str
    capacity_bps: int
    status: str = Field(description="UP, NO_CARRIER, SILENT or DRAINING.")
    down_bps: int = Field(description="Layer-2 rate towards the customers, last second.")
    up_bps: int = Field(description="Layer-2 rate towards the Internet, last second.")
    flow_count: int
    protected_session_ids: list[str] = Field(
        default_factory=list[str], description="Sessions this line is protected for."
    )

    @classmethod
    def of(cls, time_s: float, state: LineState) -> LineRecord:
        """The record of a line's state."""
        return cls(
            time_s=time_s,
            site=state.site,
            line=state.line,
            capacity_bps=state.capacity_bps,
            status=state.status.name,
            down_bps=state.down_bps,
            up_bps=state.up_bps,
            flow_count=state.flow_count,
            protected_session_ids=list(state.protected_session_ids),
        )


class LatencyRecord(Record):
    """From a report's arrival to the switches' confirmation of what it led to."""

    kind: Literal["latency"] = "latency"
    time_s: float
    session_id: str
    latency_ms: float
    moved_flow_count: int


AnyRecord = Annotated[
    SessionRecord | Sample | DecisionRecord | LineRecord | LatencyRecord, Field(discriminator="kind")
]
