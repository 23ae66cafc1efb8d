"""What the station tells the controller, and what the controller decides."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from steerline_contract.flows import FiveTuple
from steerline_contract.playback import PlayerState


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the station thinks of one session at one report.

    `need_bps` is what the session needs now (its top rate plus what refills its buffer in time),
    `play_bps` what it consumes at the rate it plays at; both count all its flows together, audio
    and overhead included. The clients' addresses in `flows` are the ones the station saw;
    `translated` says that the client ports may have been rewritten on the way.
    """

    session_id: str
    player_state: PlayerState
    buffer_length_ms: int
    critical: bool
    need_bps: int
    play_bps: int
    low_ms: int
    high_ms: int
    time_to_live_ms: int
    time_to_empty_ms: int | None = None
    flows: tuple[FiveTuple, ...] = ()
    translated: bool = False
    reason: str = ""
    received_monotonic_ns: int = 0


class DecisionKind(enum.Enum):
    """What was done. Keep is a decision too."""

    STEER = 1
    KEEP = 2
    RELEASE = 3


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision with its reason. `flow` is None where a whole session or line is meant."""

    kind: DecisionKind
    time_s: float
    site: str
    reason: str
    strategy: str
    session_id: str = ""
    flow: FiveTuple | None = None
    from_line: str = ""
    to_line: str = ""


@dataclass(frozen=True, slots=True)
class NetworkAdvice:
    """The rate that the network can sustain for a session."""

    session_id: str
    sustainable_bps: int
    reason: str


@dataclass(frozen=True, slots=True)
class Enforced:
    """The switches have confirmed what one assessment led to. Times are CLOCK_MONOTONIC."""

    session_id: str
    received_monotonic_ns: int
    enforced_monotonic_ns: int
    moved_flow_count: int
