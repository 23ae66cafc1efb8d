"""What the core is told. Every event is a frozen value; `now` (seconds) comes beside it.

`side` is "A" (access switch, the customers' side) or "B" (provider switch, towards the Internet).
Downstream is from B to A.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from steerline_contract.flows import FiveTuple
from steerline_contract.steering import Assessment

Side = Literal["A", "B"]
Role = Literal["best-effort", "steered"]


@dataclass(frozen=True, slots=True)
class InstalledRule:
    """A rule of ours found on a switch when it connects (our cookie, read back)."""

    flow: FiveTuple
    line: str
    role: Role


@dataclass(frozen=True, slots=True)
class SwitchConnected:
    """A switch answered its features, carries our pipeline, and was read back."""

    site: str
    side: Side
    lines_up: Mapping[str, bool]
    rules: tuple[InstalledRule, ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchLost:
    """The control channel to a switch ended. Its rules stay where they are."""

    site: str
    side: Side


@dataclass(frozen=True, slots=True)
class PortChanged:
    """Carrier of a line's port came or went."""

    site: str
    side: Side
    line: str
    up: bool


@dataclass(frozen=True, slots=True)
class FlowArrived:
    """A packet of a flow without a rule, from the switch where it entered."""

    site: str
    side: Side
    flow: FiveTuple


@dataclass(frozen=True, slots=True)
class FlowEnded:
    """A rule expired or was removed by the switch."""

    site: str
    side: Side
    flow: FiveTuple


@dataclass(frozen=True, slots=True)
class CountersRead:
    """Counters of one switch. Bytes and frames since the rule or port began.

    `flows`: bytes of each of our per-flow rules on this switch (upstream on A, downstream on B).
    `lines`: (received bytes, sent bytes) of each line's port on this switch.
    """

    site: str
    side: Side
    flows: Mapping[FiveTuple, int] = field(default_factory=dict[FiveTuple, int])
    lines: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@dataclass(frozen=True, slots=True)
class ProbeArrived:
    """A probe frame of ours came out of a line at `side`."""

    site: str
    side: Side
    line: str


@dataclass(frozen=True, slots=True)
class Assessed:
    """The application station speaks."""

    assessment: Assessment


@dataclass(frozen=True, slots=True)
class SteerSession:
    """Operator: move the session's flows to a line now."""

    session_id: str
    line: str


@dataclass(frozen=True, slots=True)
class PinSession:
    """Operator: move the session's flows to a line and keep them there."""

    session_id: str
    line: str


@dataclass(frozen=True, slots=True)
class ReleaseSession:
    """Operator: end protection and pin."""

    session_id: str


@dataclass(frozen=True, slots=True)
class DrainLine:
    """Operator: take a line out of use, or (drain False) back into use."""

    site: str
    line: str
    drain: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """Time went on. Sent about five times a second."""


Event = (
    SwitchConnected
    | SwitchLost
    | PortChanged
    | FlowArrived
    | FlowEnded
    | CountersRead
    | ProbeArrived
    | Assessed
    | SteerSession
    | PinSession
    | ReleaseSession
    | DrainLine
    | Tick
)
