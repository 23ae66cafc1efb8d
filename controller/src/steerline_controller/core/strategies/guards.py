"""Which session is protected on which line, and what that leaves to others."""

from __future__ import annotations

from steerline_controller.core.state import FlowState, LineView, SessionState, SiteView
from steerline_controller.core.strategies.sharing import SLACK_S, competitors, required_bps, room

# More flows than any line carries: no limit.
UNLIMITED = 1_000_000


class Guards(dict[str, str]):
    """Protected sessions and their lines."""

    def sessions_on(self, line: str, view: SiteView, but: str = "") -> list[SessionState]:
        """Sessions protected on a line."""
        return [
            view.sessions[session_id]
            for session_id, guarded in self.items()
            if guarded == line and session_id != but and session_id in view.sessions
        ]

    def best_effort_on(self, line: str, view: SiteView, now: float) -> list[FlowState]:
        """The flows that compete with the sessions protected on a line (all, where none is)."""
        own = frozenset(s.session_id for s in self.sessions_on(line, view))
        return competitors(view, line, own, now)

    def has_room(self, line: LineView, view: SiteView, now: float, more: int = 0) -> bool:
        """Whether a line takes one more competing flow, after `more` that are on their way."""
        limit = self.limit(line, view)
        return limit >= UNLIMITED or len(self.best_effort_on(line.name, view, now)) + more < limit

    def limit(self, line: LineView, view: SiteView, slack_s: float = SLACK_S) -> int:
        """How many competing flows a line takes beside its protected sessions' own.

        Without slack: how many it may keep.
        """
        sessions = self.sessions_on(line.name, view)
        if not sessions:
            return UNLIMITED
        if any(s.assessment.critical for s in sessions):
            return 0
        return room(line, [required_bps(s, slack_s) for s in sessions])

    def load(self, line: LineView, view: SiteView, now: float, more: int = 0) -> float:
        """Competitors per capacity, a protected session counting as one."""
        count = len(self.best_effort_on(line.name, view, now)) + len(self.sessions_on(line.name, view))
        return (count + more) / line.link.capacity_bps

    def elder(self, session: SessionState, view: SiteView) -> str:
        """The session, protected before this one, that names one of its connections; "" if there is none.

        Tabs of one browser share its connections to a server: only one line can carry them.
        """
        sharers = self.sharers(session, view)
        for session_id in self:
            if session_id == session.session_id:
                break
            if session_id in sharers:
                return session_id
        return ""

    def sharers(self, session: SessionState, view: SiteView) -> dict[str, SessionState]:
        """Other protected sessions that name one of its connections."""
        mine = frozenset(flow for flow in session.assessment.flows if flow.client_port)
        return {
            other.session_id: other
            for other in (view.sessions[name] for name in self if name in view.sessions)
            if other is not session and not mine.isdisjoint(other.assessment.flows)
        }

    def by_urgency(self, view: SiteView) -> list[SessionState]:
        """The protected sessions, least time to empty first."""
        return sorted((view.sessions[s] for s in self if s in view.sessions), key=urgency)


def urgency(session: SessionState) -> tuple[int, int, str]:
    """Least time to empty first."""
    assessment = session.assessment
    empty = assessment.time_to_empty_ms
    left = empty if empty is not None else assessment.buffer_length_ms + 3_600_000
    return (0 if assessment.critical else 1, left, session.session_id)
