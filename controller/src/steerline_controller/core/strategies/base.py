"""What every strategy is: three questions, each answered with a reason.

A strategy is a state machine of its own without I/O. One instance serves one site. It reads the
view and never writes it; the engine carries out what it answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from steerline_contract.flows import FiveTuple
from steerline_contract.steering import Decision, DecisionKind, NetworkAdvice
from steerline_controller.core.state import FlowState, SessionState, SiteView


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a new flow goes, and why. `session_id` when it joins a session."""

    line: str
    reason: str
    session_id: str = ""


Answer = Decision | NetworkAdvice


class Strategy(Protocol):
    """Chooses lines for flows. `now` is in seconds and never runs backwards."""

    @property
    def name(self) -> str:
        """As the settings call it."""
        ...

    def place(self, flow: FiveTuple, session_id: str, view: SiteView, now: float) -> Placement | None:
        """A flow that is new, or whose line died. None: no line is left."""
        ...

    def observe(self, view: SiteView, now: float) -> list[Answer]:
        """Fresh counters, once a second."""
        ...

    def signal(self, session: SessionState, view: SiteView, now: float) -> list[Answer]:
        """The application station speaks of a session."""
        ...

    def ended(self, session_id: str, reason: str, view: SiteView, now: float) -> list[Answer]:
        """A session ended, fell silent or lost its trust."""
        ...

    def protected(self) -> Mapping[str, str]:
        """Protected sessions and their lines."""
        ...

    def weights(self, view: SiteView, now: float) -> Mapping[str, int]:
        """Capacity of each line that flows nobody placed may use, in bit/s (0: none)."""
        ...


class Deaf:
    """The part of the strategies that do not listen to sessions; each adds where it places."""

    name = ""

    def observe(self, view: SiteView, now: float) -> list[Answer]:
        """Moves nothing."""
        return []

    def signal(self, session: SessionState, view: SiteView, now: float) -> list[Answer]:
        """Keeps everything where it is, and says so."""
        if not session.assessment.critical:
            return []
        reason = f"{self.name} does not act on sessions"
        return [keep(self.name, session.session_id, view, now, reason)]

    def ended(
        self,
        session_id: str,
        reason: str,
        view: SiteView,
        now: float,
    ) -> list[Answer]:
        """Nothing was protected."""
        return []

    def protected(self) -> Mapping[str, str]:
        """Nothing is."""
        return {}

    def weights(self, view: SiteView, now: float) -> Mapping[str, int]:
        """Every usable line by its capacity."""
        return {line.name: line.link.capacity_bps for line in view.usable_lines()}


def steer(
    strategy: str, state: FlowState, line: str, now: float, reason: str, session_id: str = ""
) -> Decision:
    """The decision to move one flow."""
    return Decision(
        DecisionKind.STEER, now, state.site, reason, strategy, session_id, state.flow, state.line, line
    )


def keep(strategy: str, session_id: str, view: SiteView, now: float, reason: str, line: str = "") -> Decision:
    """The decision to change nothing."""
    return Decision(DecisionKind.KEEP, now, view.name, reason, strategy, session_id, None, line, line)


def release(strategy: str, session_id: str, view: SiteView, now: float, reason: str, line: str) -> Decision:
    """The decision that a line is protected no longer."""
    return Decision(DecisionKind.RELEASE, now, view.name, reason, strategy, session_id, None, line, line)


def gather(
    strategy: str, session: SessionState, line: str, view: SiteView, now: float, why: str
) -> list[Answer]:
    """Every flow of a session to one line."""
    return [
        steer(strategy, state, line, now, f"{why} ({session.resolution.name.lower()})", session.session_id)
        for state in view.flows_of(session.session_id)
        if state.line != line or state.role != "steered"
    ]
