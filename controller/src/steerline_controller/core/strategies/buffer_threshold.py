"""buffer-threshold: the source's application-aware path selection (J 4.3, experiment vi).

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
from steerline_controller.core.state import FlowState, LineView, SessionState, SiteView
from steerline_controller.core.strategies.base import Answer, Placement, keep, release, steer
from steerline_controller.core.strategies.round_robin import Rotation
from steerline_controller.core.strategies.sharing import competitors, free_bps, required_bps, room

# More flows than any line carries: no limit.
UNLIMITED = 1_000_000
# A flow younger than this may be a short one: levelling leaves it alone.
SETTLED_S = 2.0


class BufferThreshold:
    """Protects sessions that starve. Inner state: which session is protected on which line."""

    name = "buffer-threshold"

    def __init__(self, settings: StrategySettings) -> None:
        self._settings = settings
        self._rotation = Rotation()
        self._guards: dict[str, str] = {}

    # ------------------------------------------------------------ questions

    def place(self, flow: FiveTuple, session_id: str, view: SiteView, now: float) -> Placement | None:
        """With its session when that is protected; else where best effort goes now."""
        guarded = self._guards.get(session_id)
        if guarded is not None and view.lines[guarded].alive:
            return Placement(guarded, f"joins session {session_id} on its line", session_id)
        open_lines = [line for line in view.usable_lines() if self._has_room(line, view, now)]
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
        if not view.lines[guarded].usable:
            return self._serve(session, view, now)
        return self._gather(session, guarded, view, now, "stays on its line while it fills")

    def observe(self, view: SiteView, now: float) -> list[Answer]:
        """Evicts what damping held back, lets lines fill again, and levels the rest."""
        answers: list[Answer] = []
        for session_id in sorted(self._guards):
            session = view.sessions.get(session_id)
            if session is None:
                answers += self.ended(session_id, "it is gone", view, now)
        for session in self._protected_by_urgency(view):
            line = self._guards[session.session_id]
            if not view.lines[line].usable and not session.pinned_line:
                answers += self._serve(session, view, now)
            else:
                answers += self._evict(view.lines[line], view, now)
        if not answers:
            answers += self._consolidate(view, now) or self._level(view, now)
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
        taking = [line for line in usable if self._limit(line, view) > 0] or usable
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
        answers = self._gather(session, line.name, view, now, why)
        answers += self._evict(line, view, now)
        if not answers:
            if not view.flows_of(session.session_id):
                why = "none of its flows is known on the lines yet"
            answers.append(keep(self.name, session.session_id, view, now, why, line.name))
        return answers

    def _choose(self, session: SessionState, view: SiteView, now: float) -> tuple[LineView, str] | None:
        """The line for a critical session, with the reason; None when nothing carries its rate.

        In order: its own line while the need fits; another protected line where it fits; the
        unprotected line where it gets most; packed beside sessions whose rates leave its own.
        """
        need = required_bps(session)
        rate = float(session.assessment.play_bps)
        usable = view.usable_lines()
        others = {line.name: self._sessions_on(line.name, view, but=session.session_id) for line in usable}
        needs = {name: [required_bps(s) for s in sessions] for name, sessions in others.items()}
        rates = {name: [float(s.assessment.play_bps) for s in sessions] for name, sessions in others.items()}
        seconds = session.assessment.buffer_length_ms / 1000
        low = session.assessment.low_ms / 1000
        head = f"buffer {seconds:.1f} s, bound {low:.0f} s, needs {need / 1e6:.2f} Mbit/s: "

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
        if bare:
            best = max(bare, key=lambda line: self._attraction(line, session, view, now))
            return best, head + f"{best.name} is the last line"
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
            (free_bps(line, [float(s.assessment.play_bps) for s in self._sessions_on(line.name, view)])
             for line in lines),
            default=0.0,
        )  # fmt: skip
        share = max(
            (
                line.link.capacity_bps * USABLE / (1 + len(self._sessions_on(line.name, view)))
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

    def _gather(self, session: SessionState, line: str, view: SiteView, now: float, why: str) -> list[Answer]:
        """Every flow of the session to one line."""
        return [
            steer(
                self.name, state, line, now, f"{why} ({session.resolution.name.lower()})", session.session_id
            )
            for state in view.flows_of(session.session_id)
            if state.line != line or state.role != "steered"
        ]

    # ------------------------------------------------------------ best effort around it

    def _sessions_on(self, line: str, view: SiteView, but: str = "") -> list[SessionState]:
        """Sessions protected on a line."""
        return [
            view.sessions[session_id]
            for session_id, guarded in self._guards.items()
            if guarded == line and session_id != but and session_id in view.sessions
        ]

    def _protected_by_urgency(self, view: SiteView) -> list[SessionState]:
        sessions = [view.sessions[s] for s in self._guards if s in view.sessions]
        return sorted(sessions, key=urgency)

    def _best_effort_on(self, line: str, view: SiteView, now: float) -> list[FlowState]:
        """The flows that compete with the sessions protected on a line (all, where none is)."""
        own = frozenset(s.session_id for s in self._sessions_on(line, view))
        return competitors(view, line, own, now)

    def _has_room(self, line: LineView, view: SiteView, now: float, more: int = 0) -> bool:
        """Whether a line takes one more competing flow, after `more` that are on their way."""
        limit = self._limit(line, view)
        return limit >= UNLIMITED or len(self._best_effort_on(line.name, view, now)) + more < limit

    def _limit(self, line: LineView, view: SiteView) -> int:
        """How many competing flows a line takes beside its protected sessions' own."""
        sessions = self._sessions_on(line.name, view)
        if not sessions:
            return UNLIMITED
        if any(s.assessment.critical for s in sessions):
            return 0
        return room(line, [required_bps(s) for s in sessions])

    def _evict(self, line: LineView, view: SiteView, now: float) -> list[Answer]:
        """Moves best-effort flows off a line until its sessions have their need, largest first."""
        sessions = self._sessions_on(line.name, view)
        if not sessions:
            return []
        # Once given back, flows leave again only when the session would lose its rate.
        critical = any(s.assessment.critical for s in sessions)
        needs = [required_bps(s) if critical else float(s.assessment.need_bps) for s in sessions]
        here = self._best_effort_on(line.name, view, now)
        excess = len(here) - room(line, needs)
        if excess <= 0:
            return []
        leaving = sorted(here, key=lambda s: (bool(s.session_id), -s.down_bps - s.up_bps, s.since))
        movable = [s for s in leaving if now - s.moved_at >= self._settings.damping_s]
        sent: dict[str, int] = {}
        answers: list[Answer] = []
        for state in movable[:excess]:
            target = self._haven(line.name, sent, view, now)
            if target is None:
                break
            sent[target.name] = sent.get(target.name, 0) + 1
            reason = f"yields {line.name} to session {sessions[0].session_id}"
            answers.append(steer(self.name, state, target.name, now, reason))
        return answers

    def _haven(self, leaving: str, sent: Mapping[str, int], view: SiteView, now: float) -> LineView | None:
        """The emptiest other line that takes best effort, after those already `sent` there."""
        lines = [
            line
            for line in view.usable_lines()
            if line.name != leaving and self._has_room(line, view, now, sent.get(line.name, 0))
        ]
        if self._settings.best_effort == "single":
            return lines[0] if lines else None
        return min(lines, key=lambda line: self._load(line, view, now, sent.get(line.name, 0)), default=None)

    def _consolidate(self, view: SiteView, now: float) -> list[Answer]:
        """Packs sessions onto fewer lines when every line is protected and best effort has no room.

        One line a second is freed: the one whose sessions consume least, if the others carry them.
        """
        usable = view.usable_lines()
        crowded = [
            line
            for line in usable
            if len(self._best_effort_on(line.name, view, now)) > self._limit(line, view)
        ]
        if not crowded or any(not self._sessions_on(line.name, view) for line in usable):
            return []
        rates = {
            x.name: [float(s.assessment.play_bps) for s in self._sessions_on(x.name, view)] for x in usable
        }
        for leaving in sorted(usable, key=lambda line: sum(rates[line.name])):
            trial = {name: list(values) for name, values in rates.items() if name != leaving.name}
            plan: list[tuple[SessionState, str]] = []
            for session in sorted(self._sessions_on(leaving.name, view), key=urgency):
                rate = float(session.assessment.play_bps)
                fitting = [n for n, values in trial.items() if free_bps(view.lines[n], values) >= rate]
                if session.pinned_line or not fitting:
                    break
                target = min(fitting, key=lambda n: free_bps(view.lines[n], trial[n]))
                trial[target].append(rate)
                plan.append((session, target))
            else:
                answers: list[Answer] = []
                for session, target in plan:
                    self._guards[session.session_id] = target
                    why = f"packed on {target}: {leaving.name} is left to best effort"
                    answers += self._gather(session, target, view, now, why)
                return answers
        return []

    def _load(self, line: LineView, view: SiteView, now: float, more: int = 0) -> float:
        """Competitors per capacity, a protected session counting as one."""
        count = len(self._best_effort_on(line.name, view, now)) + len(self._sessions_on(line.name, view))
        return (count + more) / line.link.capacity_bps

    def _level(self, view: SiteView, now: float) -> list[Answer]:
        """One flow a second from the most crowded line to the emptiest that has room.

        This is how a line that was given back fills again. With best effort on a single line only
        lines that were given back take part.
        """
        guarded = set(self._guards.values())
        usable = view.usable_lines()
        takers = [
            line
            for line in usable
            if self._has_room(line, view, now)
            and (self._settings.best_effort == "round-robin" or line.name in guarded)
        ]
        if not takers:
            return []
        taker = min(takers, key=lambda line: self._load(line, view, now))
        after = self._load(taker, view, now, 1)
        donors = [
            line for line in usable if line.name not in guarded and self._load(line, view, now, -1) >= after
        ]
        for donor in sorted(donors, key=lambda line: -self._load(line, view, now)):
            movable = [
                s
                for s in self._best_effort_on(donor.name, view, now)
                if not s.session_id
                and now - s.moved_at >= self._settings.damping_s
                and now - s.started_at >= SETTLED_S
            ]
            if not movable:
                continue
            state = min(movable, key=lambda s: (s.moved_at, s.since))
            if taker.name in guarded:
                reason = f"{taker.name} takes other traffic again"
            else:
                reason = f"{donor.name} is more crowded than {taker.name}"
            return [steer(self.name, state, taker.name, now, reason)]
        return []


def urgency(session: SessionState) -> tuple[int, int, str]:
    """Least time to empty first."""
    assessment = session.assessment
    empty = assessment.time_to_empty_ms
    left = empty if empty is not None else assessment.buffer_length_ms + 3_600_000
    return (0 if assessment.critical else 1, left, session.session_id)
