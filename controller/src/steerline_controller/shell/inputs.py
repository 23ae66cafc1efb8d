"""Everything from outside, as it stands in the one queue into the one thread that decides."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol

from steerline_contract.steering import Assessment, Decision
from steerline_controller.core.events import DrainLine, PinSession, ReleaseSession, SteerSession
from steerline_controller.core.snapshot import Snapshot


class Channel(Protocol):
    """A connection to one switch. Nothing blocks: what a switch does not take is held, to a limit."""

    @property
    def peer(self) -> str:
        """Who is at the other end, for people."""
        ...

    def send(self, data: bytes, /) -> object:
        """Sends one or more whole messages."""
        ...

    def close(self) -> None:
        """Ends the connection."""
        ...


@dataclass(frozen=True, slots=True)
class PortInfo:
    """A port of a switch."""

    number: int
    up: bool


@dataclass(frozen=True, slots=True)
class SwitchUp:
    """A switch said hello, its features and its ports."""

    channel: Channel
    datapath_id: int
    ports: Mapping[str, PortInfo]


@dataclass(frozen=True, slots=True)
class SwitchDown:
    """A switch is gone, and why as far as is known."""

    channel: Channel
    reason: str


@dataclass(frozen=True, slots=True)
class PortNews:
    """A port appeared, changed, or (None) is gone."""

    channel: Channel
    name: str
    port: PortInfo | None


@dataclass(frozen=True, slots=True)
class Raw:
    """A message of the hot path, as bytes, and when it was read (CLOCK_MONOTONIC)."""

    channel: Channel
    message: bytes
    at_ns: int


@dataclass(frozen=True, slots=True)
class Said:
    """An assessment of a station."""

    assessment: Assessment


OperatorEvent = SteerSession | PinSession | ReleaseSession | DrainLine


@dataclass(frozen=True, slots=True)
class Asked:
    """An operator's wish; the decisions it led to go into `answer`, or the error that says what was wrong."""

    event: OperatorEvent
    answer: Future[tuple[Decision, ...]]


@dataclass(frozen=True, slots=True)
class Shown:
    """Somebody wants to see the state."""

    answer: Future[Snapshot]


@dataclass(frozen=True, slots=True)
class Stop:
    """End, leaving all rules where they are."""

    reason: str


Input = SwitchUp | SwitchDown | PortNews | Raw | Said | Asked | Shown | Stop
Inbox = SimpleQueue[Input]


class UnknownNameError(LookupError):
    """An operator named something that does not exist."""


class UnusableNameError(ValueError):
    """An operator's wish is not possible as it stands."""
