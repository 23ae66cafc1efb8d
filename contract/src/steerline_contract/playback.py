"""What a player says of itself, in the words of CTA-5004 (CMCD)."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from steerline_contract.flows import FiveTuple


class PlayerState(enum.Enum):
    """CMCD key "sta"."""

    STARTING = 1
    PLAYING = 2
    SEEKING = 3
    REBUFFERING = 4
    PAUSED = 5
    WAITING = 6
    ENDED = 7
    FATAL_ERROR = 8
    QUIT = 9


class ReportCause(enum.Enum):
    """Why a report was sent."""

    PERIODIC = 1
    STATE_CHANGE = 2
    QUALITY_SWITCH = 3
    FLOWS_CHANGED = 4
    REPLAYED = 5


@dataclass(frozen=True, slots=True)
class PlaybackReport:
    """One observation of one player. Ranges are checked where it enters (`wire`)."""

    session_id: str
    sequence_number: int
    timestamp_ms: int
    cause: ReportCause
    player_state: PlayerState
    buffer_length_ms: int
    encoded_bitrate_kbps: int = 0
    top_bitrate_kbps: int = 0
    target_buffer_ms: int = 0
    measured_throughput_kbps: int = 0
    starved: bool = False
    playback_rate: float = 1.0
    remaining_media_ms: int | None = None
    flows: tuple[FiveTuple, ...] = ()
    stall_count: int = 0
    stall_duration_ms: int = 0
    player_name: str = ""
