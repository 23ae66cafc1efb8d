"""What an extension without a native host posts, and what it is answered.

The same words as contract/schema/native-messaging.schema.json, where an extension's author reads them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from steerline_contract.limits import (
    DAY_MS,
    MAX_FLOWS,
    MAX_KBPS,
    MAX_NAME_LENGTH,
    MAX_PLAYBACK_RATE,
    MAX_REASON_LENGTH,
    YEAR_2100_MS,
)

MAX_REPORTS = 64
MAX_MESSAGES = 256
MAX_SERVERS = MAX_FLOWS
# The largest whole number that every JSON reader keeps exactly.
MAX_WHOLE = 2**53 - 1
MAX_UINT32 = 2**32 - 1


def _whole(value: object) -> object:
    """JSON knows no difference between 1 and 1.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"at most {MAX_NAME_LENGTH} printable characters")
    return text


Whole = Annotated[int, BeforeValidator(_whole)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class MediaServer(_Strict):
    """A server that carries media, as the browser knows it."""

    address: str = Field(description="IPv4 or IPv6, as the browser resolved it.")
    port: Whole = Field(
        ge=0, le=65_535, description="The URL's port; with Alt-Svc the connection's may differ. 0: not known."
    )


class Report(_Strict):
    """One observation of one player: steerline.report.v1.PlaybackReport without flows."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)

    session_id: str = Field(
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
        description="Random and unguessable: who knows it, at the same address, speaks for the session.",
    )
    sequence_number: Whole = Field(ge=1, le=MAX_WHOLE, description="Rises with each report of a session.")
    timestamp_ms: Whole = Field(ge=0, le=YEAR_2100_MS, description="The client's clock; never backwards.")
    cause: Literal["PERIODIC", "STATE_CHANGE", "QUALITY_SWITCH"]
    player_state: Literal[
        "STARTING", "PLAYING", "SEEKING", "REBUFFERING", "PAUSED", "ENDED", "FATAL_ERROR", "QUIT"
    ] = Field(description="QUIT ends the session.")
    buffer_length_ms: Whole = Field(ge=0, le=DAY_MS, description="Media ahead of the playhead.")
    encoded_bitrate_kbps: Whole = Field(0, ge=0, le=MAX_KBPS, description="0: not known.")
    target_buffer_ms: Whole = Field(0, ge=0, le=DAY_MS, description="0: not known.")
    starved: bool
    playback_rate: float = Field(ge=0, le=MAX_PLAYBACK_RATE)
    remaining_media_ms: Whole | None = Field(
        None, ge=0, le=365 * DAY_MS, description="Absent: live, or not known."
    )
    stall_count: Whole = Field(ge=0, le=MAX_UINT32)
    stall_duration_ms: Whole = Field(ge=0, le=30 * DAY_MS)
    player_name: Annotated[str, AfterValidator(_printable)] = Field(max_length=MAX_NAME_LENGTH)
    servers: list[MediaServer] = Field(
        max_length=MAX_SERVERS,
        description="Servers that carry media of this session's page, the latest first. Protocol and client "
        "port are not known: the controller finds the connections.",
    )


class WebRequest(_Strict):
    """The latest report of each session since the last request."""

    reports: list[Report] = Field(min_length=1, max_length=MAX_REPORTS)


class AssessmentNews(BaseModel):
    """What the station thinks."""

    type: Literal["assessment"] = "assessment"
    session_id: str
    critical: bool


class AdviceNews(BaseModel):
    """The rate that the network can carry."""

    type: Literal["advice"] = "advice"
    session_id: str
    sustainable_kbps: int
    reason: str = Field(max_length=MAX_REASON_LENGTH)


class DecisionNews(BaseModel):
    """What the controller decided."""

    type: Literal["decision"] = "decision"
    session_id: str
    kind: Literal["STEER", "KEEP", "RELEASE"]
    from_line: str
    to_line: str
    time_s: float = Field(description="Seconds since the epoch.")
    reason: str = Field(max_length=MAX_REASON_LENGTH)


class RejectionNews(BaseModel):
    """A report was not accepted, and why. The others of the same request count."""

    type: Literal["rejection"] = "rejection"
    session_id: str = Field(description="As it was sent, cut to 64 characters.")
    field: str
    message: str


News = AssessmentNews | AdviceNews | DecisionNews | RejectionNews


class WebResponse(BaseModel):
    """What there is to say of the sessions of this request, since they were last told of."""

    messages: list[News] = Field(max_length=MAX_MESSAGES)
