"""buffer-threshold: application-aware path selection (Jarschel 2014, section 4.3, experiment vi).

A session below `low` seconds of buffered playtime gets the line where it gets most once best-effort
traffic yields; from `high` on that line takes other traffic again, as much as leaves the session
its rate, so that every line is full. Parameters: `damping_s` (a best-effort flow moves at most once
in it), `best_effort` (where the rest goes). The bounds come with each assessment. Cost: linear in
flows times protected lines per call.
"""

from __future__ import annotations

from collections.abc import Mapping

from steerline_contract.flows import FiveTuple
from steerline_contract.steering import NetworkAdvice
from steerline_controller.core.config import USABLE, StrategySettings
from steerline_controller.core.state import LineView, SessionState, SiteView
from steerline_controller.core.strategies.base import Answer, Placement, gather, keep, release
from steerline_controller.core.strategies.guards import Guards
from steerline_controller.core.strategies.round_robin import Rotation
from steerline_controller.core.strategies.sharing import competitors, free_bps, required_bps
from steerline_controller.core.strategies.yielding import Yielding


class BufferThreshold:
    """Protects sessions that starve. Inner state: which session is protected on which line."""

    name = "buffer-threshold"

    def __init__(self, settings: StrategySettings) -> None:
        self._settings = settings
        self._rotation = Rotation()
        self._guards = Guards()
        self._yielding = Yielding(self.name, settings, self._guards)

    # ------------------------------------------------------------ questions

    def place(self, flow: FiveTuple, session_id: str, view: SiteView, now: float) -> Placement | None:
        """With its session when that is protected; else where best effort goes now."""
        guarded = self._guards.get(session_id)
        if guarded is not None and view.lines[guarded].alive:
            return Placement(guarded, f"joins session {session_id} on its line", session_id)
        open_lines = [line for line in view.usable_lines() if self._guards.has_room(line, view, now)]
        if self._settings.best_effort == "single":
            first = next(iter(open_lines or view.usable_lines()), None)
            return Placement(first.name, "first open line", session_id) if first else None
        line = self._rotation.next(open_lines or view.usable_lines())
        return Placement(line.name, "next open line in turn", session_id) if line else None

    def signal(self, session: SessionState, view: SiteView, now: float) -> list[Answer]:
        """Serves a critical session at once; brings a protected session's new flows to its line."""
        if session.pinned_line:
            return []
        if not session.plays:
            return self.ended(session.session_id, "it does not play", view, now)
        guarded = self._guards.get(session.session_id)
        if session.assessment.critical:
            return self._serve(session, view, now)
        if guarded is None:
            return []
        if elder := self._guards.elder(session, view):
            guarded = self._guards[session.session_id] = self._guards[elder]
        if not view.lines[guarded].usable:
            return self._serve(session, view, now)
        return gather(self.name, session, guarded, view, now, "stays on its line while it fills")

    def observe(self, view: SiteView, now: float) -> list[Answer]:
        """Evicts what damping held back, lets lines fill again, and levels the rest."""
        answers: list[Answer] = []
        for session_id in sorted(self._guards):
            session = view.sessions.get(session_id)
            if session is None:
                answers += self.ended(session_id, "it is gone", view, now)
        for session in self._guards.by_urgency(view):
            if not view.lines[self._guards[session.session_id]].usable:
                answers += self._serve(session, view, now)
        for name in dict.fromkeys(self._guards.values()):
            if view.lines[name].usable:
                answers += self._yielding.evict(view.lines[name], view, now)
        if not answers:
            answers += self._yielding.consolidate(view, now) or self._yielding.level(view, now)
        return answers

    def ended(self, session_id: str, reason: str, view: SiteView, now: float) -> list[Answer]:
        """Its protection ends; its flows stay where they are, as best effort."""
        line = self._guards.pop(session_id, None)
        if line is None:
            return []
        return [release(self.name, session_id, view, now, f"protection ends: {reason}", line)]

    def protected(self) -> Mapping[str, str]:
        """Protected sessions and their lines."""
        return dict(self._guards)

    def weights(self, view: SiteView, now: float) -> Mapping[str, int]:
        """Lines that take best-effort traffic now; all usable ones when none does."""
        usable = view.usable_lines()
        taking = [line for line in usable if self._guards.limit(line, view) > 0] or usable
        if self._settings.best_effort == "single":
            taking = taking[:1]
        return {line.name: line.link.capacity_bps for line in taking}

    # ------------------------------------------------------------ serving a critical session

    def _serve(self, session: SessionState, view: SiteView, now: float) -> list[Answer]:
        chosen = self._choose(session, view, now)
        if chosen is None:
            return self._refuse(session, view, now)
        line, why = chosen
        self._guards[session.session_id] = line.name
        answers = gather(self.name, session, line.name, view, now, why)
        answers += self._yielding.evict(line, view, now)
        if not answers:
            if not view.flows_of(session.session_id):
                why = "none of its flows is known on the lines yet"
            answers.append(keep(self.name, session.session_id, view, now, why, line.name))
        return answers

    def _choose(self, session: SessionState, view: SiteView, now: float) -> tuple[LineView, str] | None:
        """The line for a critical session, with the reason; None when nothing carries its rate.

        In order: the line of a session whose connections it shares; its own line while the need fits;
        another protected line where it fits; the unprotected line where it gets most; packed beside
        sessions whose rates leave its own; in the place of a session that has enough. The last line
        stays with best effort.
        """
        sharers = self._guards.sharers(session, view)
        need = required_bps(session) + sum(map(required_bps, sharers.values()))
        rate = float(session.assessment.play_bps)
        usable = view.usable_lines()
        others = {
            line.name: [
                other
                for other in self._guards.sessions_on(line.name, view, but=session.session_id)
                if other.session_id not in sharers
            ]
            for line in usable
        }
        needs = {name: [required_bps(s) for s in sessions] for name, sessions in others.items()}
        rates = {name: [float(s.assessment.play_bps) for s in sessions] for name, sessions in others.items()}
        seconds = session.assessment.buffer_length_ms / 1000
        low = session.assessment.low_ms / 1000
        head = f"buffer {seconds:.1f} s, bound {low:.0f} s, needs {need / 1e6:.2f} Mbit/s: "

        elder = self._guards.elder(session, view)
        if elder and view.lines[self._guards[elder]].usable:
            line = view.lines[self._guards[elder]]
            return line, head + f"shares connections with session {elder} on {line.name}"
        own = self._guards.get(session.session_id)
        if own in others and free_bps(view.lines[own], needs[own]) >= min(
            need, view.lines[own].link.capacity_bps * USABLE
        ):
            return view.lines[own], head + f"stays on {own}, best effort yields"
        shared = [line for line in usable if others[line.name] and free_bps(line, needs[line.name]) >= need]
        if shared:
            best = max(shared, key=lambda line: free_bps(line, needs[line.name]))
            return best, head + f"{best.name} carries it beside {len(others[best.name])} other(s)"
        bare = [line for line in usable if not others[line.name]]
        best_effort = any(not s.session_id and s.competes(now) for s in view.flows.values())
        if bare and (len(bare) > 1 or not best_effort or len(usable) == 1):
            best = max(bare, key=lambda line: self._attraction(line, session, view, now))
            return best, head + f"{best.name} gives it most"
        packed = [line for line in usable if others[line.name] and free_bps(line, rates[line.name]) >= rate]
        if packed:
            best = max(packed, key=lambda line: (line.name == own, free_bps(line, rates[line.name])))
            return best, head + f"packed on {best.name}: no line is left for it alone"
        return self._displace(session, rates, view, head)

    def _displace(
        self, session: SessionState, rates: Mapping[str, list[float]], view: SiteView, head: str
    ) -> tuple[LineView, str] | None:
        """Not all fit: the least time to empty first. A session that has enough gives up its place."""
        rate = float(session.assessment.play_bps)
        for other in reversed(self._guards.by_urgency(view)):
            line = view.lines[self._guards[other.session_id]]
            if other.assessment.critical or other.assessment.buffer_length_ms < other.assessment.high_ms:
                continue
            if other.pinned_line or other.session_id == session.session_id or line.name not in rates:
                continue
            if free_bps(line, rates[line.name]) + other.assessment.play_bps >= rate:
                del self._guards[other.session_id]
                return line, head + f"takes the place of {other.session_id} on {line.name}, which has enough"
        return None

    def _attraction(
        self, line: LineView, session: SessionState, view: SiteView, now: float
    ) -> tuple[float, int, int]:
        """Capacity first; then as few moves as possible; then where the session is already."""
        here = sum(1 for s in view.flows_of(session.session_id) if s.line == line.name)
        away = sum(1 for s in view.flows_of(session.session_id) if s.line != line.name)
        yielding = len(competitors(view, line.name, frozenset({session.session_id}), now))
        return (line.link.capacity_bps, -(yielding + away), here)

    def _refuse(self, session: SessionState, view: SiteView, now: float) -> list[Answer]:
        """Nothing carries it: it keeps what it has, and hears what it can have."""
        lines = view.usable_lines()
        best = max(
            (free_bps(line, [float(s.assessment.play_bps) for s in self._guards.sessions_on(line.name, view)])
             for line in lines),
            default=0.0,
        )  # fmt: skip
        share = max(
            (
                line.link.capacity_bps * USABLE / (1 + len(self._guards.sessions_on(line.name, view)))
                for line in lines
            ),
            default=0.0,
        )
        sustainable = int(max(best, share, 0.0))
        reason = f"no line carries its rate; it can sustain {sustainable / 1e6:.2f} Mbit/s"
        return [
            keep(self.name, session.session_id, view, now, reason),
            NetworkAdvice(session.session_id, sustainable, reason),
        ]
