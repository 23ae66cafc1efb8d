"""All sessions: whose they are, which reports count, and when silence ends them."""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from steerline_appstation.core.addresses import attribute
from steerline_appstation.core.limits import BYTES_OF_A_REPORT, ReportBudget, reports_in
from steerline_appstation.core.order import Order, OutOfOrderError
from steerline_appstation.core.policy import Policy
from steerline_appstation.core.session import Session
from steerline_contract.errors import ForeignAddressError, InvalidValueError
from steerline_contract.flows import IPAddress
from steerline_contract.playback import PlaybackReport, PlayerState, ReportCause
from steerline_contract.steering import Assessment

# What was learnt of a session that fell silent is kept this long, for the agent that comes back.
MEMORY_S: Final = 600.0
MAX_REMEMBERED: Final = 10_000


class RejectionReason(enum.Enum):
    """Why a report does not count. Numbers are the wire's."""

    INVALID = 1
    FOREIGN = 2
    OUT_OF_ORDER = 3
    TOO_MANY = 4


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """A session that is over. `last_s` is when its last report came."""

    session_id: str
    peer: IPAddress
    last_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """A report that was assessed. `changed`: critical became another than before."""

    assessment: Assessment
    opened: bool
    changed: bool
    ended: SessionEnded | None


@dataclass(frozen=True, slots=True)
class History:
    """A report that was kept while the station was away: stored, not assessed."""

    opened: bool


@dataclass(frozen=True, slots=True)
class Rejected:
    """A report that does not count; the session goes on without it."""

    reason: RejectionReason
    field: str
    message: str


@dataclass(slots=True)
class _Entry:
    peer: IPAddress
    session: Session
    order: Order
    last_s: float
    assessment: Assessment | None = None


class Station:
    """The table of sessions. `now_s` never falls; all methods are cheap and raise nothing of their own."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._live: OrderedDict[str, _Entry] = OrderedDict()  # the longest silent first
        self._remembered: OrderedDict[str, tuple[float, IPAddress, Session]] = OrderedDict()
        self._sessions_of: Counter[IPAddress] = Counter()
        self._budgets: dict[IPAddress, ReportBudget] = {}

    def __len__(self) -> int:
        return len(self._live)

    def admit(self, peer: IPAddress, now_s: float, size_bytes: int = 0) -> Rejected | None:
        """Counts one message of this address, right or wrong. A rejection where it has sent too much."""
        per_s = self._policy.max_reports_per_s_per_address
        budget = self._budgets.get(peer)
        if budget is None:
            budget = self._budgets[peer] = ReportBudget(per_s, now_s)
        if budget.take(now_s, reports_in(size_bytes)):
            return None
        return Rejected(
            RejectionReason.TOO_MANY,
            "report",
            f"too much from {peer}; allowed: {per_s} reports of {BYTES_OF_A_REPORT} bytes a second "
            "from one address",
        )

    def report(self, report: PlaybackReport, peer: IPAddress, now_s: float) -> Accepted | History | Rejected:
        """Takes one report of a client whose address the network shows to be `peer`."""
        try:
            return self._take(report, peer, now_s)
        except ForeignAddressError as error:
            return Rejected(RejectionReason.FOREIGN, error.field, str(error))
        except OutOfOrderError as error:
            return Rejected(RejectionReason.OUT_OF_ORDER, error.field, str(error))
        except InvalidValueError as error:
            return Rejected(RejectionReason.INVALID, error.field, str(error))

    def expire(self, now_s: float) -> list[SessionEnded]:
        """Ends the sessions that were silent for too long."""
        timeout_s = self._policy.report_timeout_s
        ended: list[SessionEnded] = []
        while self._live:
            session_id, entry = next(iter(self._live.items()))
            if now_s < entry.last_s + timeout_s:
                break
            ended.append(self._end(session_id, f"no report for {timeout_s:g} s"))
            self._remembered[session_id] = (now_s, entry.peer, entry.session)
        self._forget(now_s)
        return ended

    def assessments(self) -> Iterator[Assessment]:
        """The last assessment of each live session that has one."""
        return (entry.assessment for entry in self._live.values() if entry.assessment is not None)

    def assessment(self, session_id: str) -> Assessment | None:
        """The last assessment of a live session."""
        entry = self._live.get(session_id)
        return entry.assessment if entry else None

    def target_s(self, session_id: str) -> float | None:
        """The buffer a live session's player aims at, s; None where it is not known."""
        entry = self._live.get(session_id)
        return entry.session.target_s if entry else None

    def _take(self, report: PlaybackReport, peer: IPAddress, now_s: float) -> Accepted | History | Rejected:
        session_id = report.session_id
        entry = self._live.get(session_id)
        if entry is not None and entry.peer != peer:
            raise ForeignAddressError(
                "session_id", session_id, "a session of your own; this one was opened from another address"
            )
        opened = entry is None
        if entry is None:
            too_many = self._no_room(peer)
            if too_many is not None:
                return too_many
            entry = _Entry(peer, Session(self._policy), Order(), now_s)
        entry.order.check(report)
        attributed = attribute(report.flows, peer, self._policy.customer_networks)
        # From here on the report counts.
        entry.order.accept(report)
        if opened:
            entry.session = self._recall(session_id, peer) or entry.session
            self._live[session_id] = entry
            self._sessions_of[peer] += 1
        entry.last_s = now_s
        self._live.move_to_end(session_id)
        if report.cause is ReportCause.REPLAYED:
            return History(opened)
        before = entry.assessment
        entry.assessment = entry.session.assess(report, attributed)
        ended = None
        if report.player_state is PlayerState.QUIT:
            ended = self._end(session_id, "the viewer left")
        changed = entry.assessment.critical != (before.critical if before else False)
        return Accepted(entry.assessment, opened, changed, ended)

    def _no_room(self, peer: IPAddress) -> Rejected | None:
        of_address, of_all = self._policy.max_sessions_per_address, self._policy.max_sessions
        if self._sessions_of[peer] >= of_address:
            message = f"{peer} has {of_address} sessions; allowed: {of_address} at once from one address"
        elif len(self._live) >= of_all:
            message = f"the station has {of_all} sessions; allowed: {of_all} at once"
        else:
            return None
        return Rejected(RejectionReason.TOO_MANY, "session_id", message)

    def _recall(self, session_id: str, peer: IPAddress) -> Session | None:
        remembered = self._remembered.pop(session_id, None)
        if remembered is None or remembered[1] != peer:
            return None
        remembered[2].resume()
        return remembered[2]

    def _end(self, session_id: str, reason: str) -> SessionEnded:
        entry = self._live.pop(session_id)
        self._sessions_of[entry.peer] -= 1
        if not self._sessions_of[entry.peer]:
            del self._sessions_of[entry.peer]
        return SessionEnded(session_id, entry.peer, entry.last_s, reason)

    def _forget(self, now_s: float) -> None:
        while self._remembered:
            since_s, _, _ = next(iter(self._remembered.values()))
            if now_s - since_s < MEMORY_S and len(self._remembered) <= MAX_REMEMBERED:
                break
            self._remembered.popitem(last=False)
        for peer in [p for p, budget in self._budgets.items() if budget.idle(now_s)]:
            del self._budgets[peer]
