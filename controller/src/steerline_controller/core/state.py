"""The network as the core knows it. The engine writes it; strategies read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from steerline_contract.flows import FiveTuple, IPAddress, LineStatus, Link
from steerline_contract.playback import PlayerState
from steerline_contract.steering import Assessment
from steerline_controller.core.events import Role
from steerline_controller.core.snapshot import Resolution

# Below this a flow does not compete for a line.
IDLE_BPS = 20_000
# A flow this young has no rate yet and counts as one that will compete.
YOUNG_S = 2.5


@dataclass(slots=True)
class FlowState:
    """A flow that has (or is about to have) rules. Rates are layer-2 bit/s of the last interval."""

    flow: FiveTuple
    site: str
    line: str
    role: Role
    since: float
    reason: str
    session_id: str = ""
    moved_at: float = float("-inf")
    down_bps: float = 0.0
    up_bps: float = 0.0
    down_bytes: int = 0
    down_total: int = 0
    up_bytes: int = 0
    active_at: float = 0.0
    media_at: float = float("-inf")
    started_at: float = 0.0
    displaced_from: str = ""
    ended_sides: frozenset[str] = frozenset()

    def competes(self, now: float) -> bool:
        """Whether it takes a share of its line: it carries bytes, or is too young to tell."""
        return self.down_bps + self.up_bps > IDLE_BPS or now - self.started_at < YOUNG_S


@dataclass(slots=True)
class LineView:
    """A leased line."""

    link: Link
    carrier: bool = True
    silent: bool = False
    draining: bool = False
    down_bps: float = 0.0
    up_bps: float = 0.0

    @property
    def name(self) -> str:
        """Its name."""
        return self.link.name

    @property
    def alive(self) -> bool:
        """Whether bytes come out of it."""
        return self.carrier and not self.silent

    @property
    def usable(self) -> bool:
        """Whether flows may be placed on it."""
        return self.alive and not self.draining

    @property
    def status(self) -> LineStatus:
        """The one word for it, worst first."""
        if not self.carrier:
            return LineStatus.NO_CARRIER
        if self.silent:
            return LineStatus.SILENT
        return LineStatus.DRAINING if self.draining else LineStatus.UP


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a session's reports and the counters said at the start of a window."""

    since: float
    buffer_ms: int
    fed_bytes: int
    flows: frozenset[FiveTuple]
    player_state: PlayerState


@dataclass(slots=True)
class SessionState:
    """A session that the station assesses, and what of it was found in the network."""

    assessment: Assessment
    site: str
    expires_at: float
    resolution: Resolution = Resolution.NONE
    pinned_line: str = ""
    critical_since: float | None = None
    ledger: Ledger | None = None
    distrusted_until: float = float("-inf")

    @property
    def session_id(self) -> str:
        """Its id."""
        return self.assessment.session_id

    @property
    def plays(self) -> bool:
        """Whether it needs media now or soon."""
        return self.assessment.player_state in (
            PlayerState.STARTING,
            PlayerState.PLAYING,
            PlayerState.REBUFFERING,
            PlayerState.SEEKING,
            PlayerState.WAITING,
        )


@dataclass(slots=True)
class SiteView:
    """One site: its lines in the operator's order, its flows and the sessions found there."""

    name: str
    lines: dict[str, LineView]
    flows: dict[FiveTuple, FlowState] = field(default_factory=dict[FiveTuple, FlowState])
    sessions: dict[str, SessionState] = field(default_factory=dict[str, SessionState])
    # (client, server) -> flows: what a new flow between the two hosts of a session is found by.
    _by_hosts: dict[tuple[IPAddress, IPAddress], dict[FiveTuple, None]] = field(
        default_factory=dict[tuple[IPAddress, IPAddress], dict[FiveTuple, None]]
    )

    def add(self, state: FlowState) -> None:
        """A flow that is new."""
        self.flows[state.flow] = state
        self._by_hosts.setdefault((state.flow.client, state.flow.server), {})[state.flow] = None

    def remove(self, flow: FiveTuple) -> None:
        """A flow that is gone."""
        if self.flows.pop(flow, None) is None:
            return
        hosts = (flow.client, flow.server)
        peers = self._by_hosts[hosts]
        del peers[flow]
        if not peers:
            del self._by_hosts[hosts]

    def between(self, client: IPAddress, server: IPAddress) -> Iterator[FlowState]:
        """The flows between two hosts."""
        return (self.flows[flow] for flow in self._by_hosts.get((client, server), ()))

    def usable_lines(self) -> list[LineView]:
        """Lines that may be used, in the operator's order.

        When there is none: those drained; when all are silent (a whole switch was away): those with
        carrier, for a packet that may get lost is worth more than one that is not sent.
        """
        every = list(self.lines.values())
        return (
            [line for line in every if line.usable]
            or [line for line in every if line.alive]
            or [line for line in every if line.carrier]
        )

    def on_line(self, name: str) -> Iterator[FlowState]:
        """The flows placed on a line."""
        return (state for state in self.flows.values() if state.line == name)

    def flows_of(self, session_id: str) -> list[FlowState]:
        """The flows of a session."""
        return [state for state in self.flows.values() if state.session_id == session_id]
