"""What the engine knows at one moment, as operators see it. Values only: safe to hand to any thread."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from steerline_contract.flows import FiveTuple, LineState


class Resolution(enum.Enum):
    """How a session's reported flows were found in the network."""

    EXACT = 1
    TRANSLATED = 2
    NONE = 3


@dataclass(frozen=True, slots=True)
class PlacedFlowView:
    """One flow, the line it is on and why. Rates are of the last second, layer 2."""

    site: str
    flow: FiveTuple
    line: str
    session_id: str = ""
    down_bps: int = 0
    up_bps: int = 0
    reason: str = ""
    since_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SessionView:
    """One session as the strategy treats it."""

    session_id: str
    site: str
    critical: bool
    protected: bool
    line: str
    pinned: bool
    resolution: Resolution
    buffer_length_ms: int
    need_bps: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Lines, flows and sessions at one moment."""

    strategy: str
    lines: tuple[LineState, ...] = ()
    flows: tuple[PlacedFlowView, ...] = ()
    sessions: tuple[SessionView, ...] = ()
