"""What REST answers, beside the records themselves."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from steerline_appstation.shell.latency import Percentiles
from steerline_appstation.store.records import LineRecord, Sample, SessionRecord
from steerline_appstation.store.writer import WriterState


class ControllerHealth(BaseModel):
    """The stream to the controller."""

    address: str
    connected: bool
    since_s: float = Field(description="Connected, or away, since then; seconds since the epoch.")


class HistoryHealth(BaseModel):
    """The store, or the record file. Trouble here costs history, never steering."""

    ok: bool
    problem: str = Field(description="What it said; empty while it takes what it gets.")
    since_s: float = Field(description="As it is since then; seconds since the epoch.")
    queued: int = Field(description="Records that wait to be written.")
    dropped: int = Field(description="Records lost since the start because the queue was full.")

    @classmethod
    def of(cls, state: WriterState) -> HistoryHealth:
        """From the writer's own words."""
        return cls(
            ok=not state.problem,
            problem=state.problem,
            since_s=state.since_s,
            queued=state.queued,
            dropped=state.dropped,
        )


class Health(BaseModel):
    """How the station fares."""

    status: Literal["ok", "degraded"] = Field(description="degraded: something below is not as it should be.")
    uptime_s: float
    live_sessions: int
    critical_sessions: int
    agent_streams: int
    rejected_reports: int = Field(description="Since the start.")
    controller: ControllerHealth
    history: dict[str, HistoryHealth] = Field(description="By name: redis, and record where one is written.")


class Detail(BaseModel):
    """An error in words."""

    detail: str


class SessionWithSeries(BaseModel):
    """One session and its time series."""

    session: SessionRecord
    series: list[Sample] = Field(description="In order of time; empty while history is away.")
    series_problem: str = Field("", description="Why there is no series; empty where there is nothing wrong.")


class LineWithSeries(BaseModel):
    """One line as it is, and was."""

    line: LineRecord
    series: list[LineRecord]


class LatencyFigures(BaseModel):
    """Percentiles by nearest rank over the newest 20,000 samples; n and max since the start."""

    n: int
    p50_ms: float | None = Field(description="null while there is no sample")
    p99_ms: float | None
    max_ms: float | None

    @classmethod
    def of(cls, figures: Percentiles) -> LatencyFigures:
        """From what was measured."""
        return cls(n=figures.n, p50_ms=figures.p50_ms, p99_ms=figures.p99_ms, max_ms=figures.max_ms)


class LatencyReport(BaseModel):
    """How quick the network answers."""

    enforced: LatencyFigures = Field(
        description="From a report's arrival at the station to the last barrier reply of the switches, "
        "for the reports that led to a change."
    )
    assessed: LatencyFigures = Field(
        description="The station's own part: from a report's arrival to its assessment handed to the "
        "transport."
    )
