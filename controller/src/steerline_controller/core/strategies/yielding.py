"""How best-effort traffic makes room on protected lines, and takes it back.

Pure answers over the guards and the view: who leaves a line, where to, who may come back, and which
sessions are packed together when every line is protected.
"""

from __future__ import annotations

from collections.abc import Mapping

from steerline_controller.core.config import StrategySettings
from steerline_controller.core.state import LineView, SessionState, SiteView
from steerline_controller.core.strategies.base import Answer, gather, release, steer
from steerline_controller.core.strategies.guards import Guards, urgency
from steerline_controller.core.strategies.sharing import free_bps, required_bps, room

# A flow younger than this may be a short one: levelling leaves it alone.
SETTLED_S = 2.0


class Yielding:
    """Moves best-effort flows around protected sessions, each at most once in the damping time."""

    def __init__(self, strategy: str, settings: StrategySettings, guards: Guards) -> None:
        self._strategy = strategy
        self._settings = settings
        self._guards = guards

    def evict(self, line: LineView, view: SiteView, now: float) -> list[Answer]:
        """Moves best-effort flows off a line until its sessions have their need, largest first."""
        sessions = self._guards.sessions_on(line.name, view)
        if not sessions:
            return []
        needs = [required_bps(s) for s in sessions]
        here = self._guards.best_effort_on(line.name, view, now)
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
            answers.append(steer(self._strategy, state, target.name, now, reason))
        return answers

    def _haven(self, leaving: str, sent: Mapping[str, int], view: SiteView, now: float) -> LineView | None:
        """The emptiest other line that takes best effort, after those already `sent` there."""
        lines = [
            line
            for line in view.usable_lines()
            if line.name != leaving and self._guards.has_room(line, view, now, sent.get(line.name, 0))
        ]
        if self._settings.best_effort == "single":
            return lines[0] if lines else None
        return min(
            lines, key=lambda line: self._guards.load(line, view, now, sent.get(line.name, 0)), default=None
        )

    def level(self, view: SiteView, now: float) -> list[Answer]:
        """One flow a second from the most crowded line to the emptiest that has room.

        This is how a line that was given back fills again. With best effort on a single line only
        lines that were given back take part.
        """
        guarded = set(self._guards.values())
        usable = view.usable_lines()
        takers = [
            line
            for line in usable
            if self._guards.has_room(line, view, now)
            and (self._settings.best_effort == "round-robin" or line.name in guarded)
        ]
        if not takers:
            return []
        taker = min(takers, key=lambda line: self._guards.load(line, view, now))
        after = self._guards.load(taker, view, now, 1)
        donors = [
            line
            for line in usable
            if line.name not in guarded and self._guards.load(line, view, now, -1) >= after
        ]
        for donor in sorted(donors, key=lambda line: -self._guards.load(line, view, now)):
            movable = [
                s
                for s in self._guards.best_effort_on(donor.name, view, now)
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
            return [steer(self._strategy, state, taker.name, now, reason)]
        return []

    def consolidate(self, view: SiteView, now: float) -> list[Answer]:
        """Frees a line when every line is protected and best effort has no room.

        Sessions are packed onto the other lines as far as these carry their rates, the most urgent
        first; those left over are protected no longer. Of all lines the one that leaves the fewest
        over is freed, and among these the one whose sessions consume least.
        """
        usable = view.usable_lines()
        if len(usable) < 2 or any(not self._guards.sessions_on(line.name, view) for line in usable):
            return []
        if not any(
            len(self._guards.best_effort_on(line.name, view, now)) > self._guards.limit(line, view, slack_s=0)
            for line in usable
        ):
            return []
        rates = {
            line.name: [float(s.assessment.play_bps) for s in self._guards.sessions_on(line.name, view)]
            for line in usable
        }
        plans = {line.name: self._pack(line, rates, view) for line in usable}
        freed = min(usable, key=lambda line: (len(plans[line.name][1]), sum(rates[line.name]))).name
        placed, left_over = plans[freed]
        answers: list[Answer] = []
        for session, target in placed:
            self._guards[session.session_id] = target
            why = f"packed on {target}: {freed} is left to best effort"
            answers += gather(self._strategy, session, target, view, now, why)
        for session in left_over:
            del self._guards[session.session_id]
            why = "its rate fits nowhere: protected no longer"
            answers.append(release(self._strategy, session.session_id, view, now, why, freed))
        return answers

    def _pack(
        self, leaving: LineView, rates: Mapping[str, list[float]], view: SiteView
    ) -> tuple[list[tuple[SessionState, str]], list[SessionState]]:
        """Where a line's sessions would go, and those that fit nowhere."""
        trial = {name: list(values) for name, values in rates.items() if name != leaving.name}
        placed: list[tuple[SessionState, str]] = []
        left_over: list[SessionState] = []
        for session in sorted(self._guards.sessions_on(leaving.name, view), key=urgency):
            rate = float(session.assessment.play_bps)
            fitting = [name for name, values in trial.items() if free_bps(view.lines[name], values) >= rate]
            if not fitting:
                left_over.append(session)
                continue
            target = min(fitting, key=lambda name: free_bps(view.lines[name], trial[name]))
            trial[target].append(rate)
            placed.append((session, target))
        return placed, left_over
