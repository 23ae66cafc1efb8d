"""Sessions: where each is, how long it is protected, and whether it can be believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from steerline_contract.errors import InvalidValueError
from steerline_contract.flows import FiveTuple
from steerline_contract.playback import PlayerState
from steerline_contract.steering import Assessment, Decision, DecisionKind
from steerline_controller.core.config import ADOPTED_S, QUIET_S
from steerline_controller.core.effects import Effect
from steerline_controller.core.resolution import fits, resolve
from steerline_controller.core.site import Site
from steerline_controller.core.snapshot import Resolution
from steerline_controller.core.state import FlowState, SessionState
from steerline_controller.core.trust import DISTRUST_S, contradiction

# A flow that joined its session by its hosts is believed this long before the agent must name it.
JOINED_S = 3.0


class Sessions:
    """All sessions of all sites."""

    def __init__(self, sites: Mapping[str, Site]) -> None:
        self._sites = sites
        self._site_of: dict[str, str] = {}

    def assessed(self, assessment: Assessment, now: float) -> list[Effect]:
        """The station speaks of a session."""
        if assessment.player_state in (PlayerState.ENDED, PlayerState.QUIT, PlayerState.FATAL_ERROR):
            return self._end(assessment.session_id, f"the player says {assessment.player_state.name}", now)
        site, resolution, flows, effects = self._locate(assessment, now)
        session = site.view.sessions.get(assessment.session_id)
        expires_at = now + assessment.time_to_live_ms / 1000
        if session is None:
            session = SessionState(assessment, site.name, expires_at)
            site.view.sessions[assessment.session_id] = session
        elif now < session.distrusted_until and assessment.critical:
            assessment = replace(assessment, critical=False)
        if assessment.critical and session.critical_since is None:
            session.critical_since = now
            site.unsay(assessment.session_id)
        elif not assessment.critical:
            session.critical_since = None
        session.assessment = assessment
        session.expires_at = expires_at
        session.resolution = resolution
        effects += self._claim(site, session, flows, now)
        if session.pinned_line:
            effects += self._to_line(site, session, session.pinned_line, "pinned by the operator", now)
        return effects + site.carry_out(site.strategy.signal(session, site.view, now), now)

    def _locate(
        self, assessment: Assessment, now: float
    ) -> tuple[Site, Resolution, tuple[FiveTuple, ...], list[Effect]]:
        """The site where its flows are; else where it was; else the first."""
        known = self._site_of.get(assessment.session_id)
        names = sorted(self._sites, key=lambda name: name != known)
        found = Resolution.NONE
        flows: tuple[FiveTuple, ...] = ()
        chosen = names[0]
        for name in names:
            found, flows = resolve(assessment, self._sites[name].view, now)
            if found is not Resolution.NONE:
                chosen = name
                break
        effects: list[Effect] = []
        if known is not None and known != chosen:
            effects = self._end(assessment.session_id, f"it moved to site {chosen}", now)
        self._site_of[assessment.session_id] = chosen
        return self._sites[chosen], found, flows, effects

    def _claim(
        self, site: Site, session: SessionState, flows: tuple[FiveTuple, ...], now: float
    ) -> list[Effect]:
        """Marks the session's flows, and hands back those that are its no longer."""
        effects: list[Effect] = []
        mine = set(flows)
        for state in site.view.flows_of(session.session_id):
            if state.flow not in mine and now - state.started_at > JOINED_S:
                effects += site.hand_back(state)
        for flow in flows:
            state = site.view.flows[flow]
            if not self._is_anothers(site, state, session):
                state.session_id = session.session_id
        return effects

    def _is_anothers(self, site: Site, state: FlowState, session: SessionState) -> bool:
        """Tabs of one browser share connections: one that a protected session names too is that one's, so
        that it is not taken for best effort."""
        other = site.view.sessions.get(state.session_id)
        if other is None or other is session or state.flow not in other.assessment.flows:
            return False
        protected = site.strategy.protected()
        return other.session_id in protected and session.session_id not in protected

    def host_of(self, flow: FiveTuple, site: Site) -> str:
        """The protected or pinned session between whose hosts a new flow runs; "" if there is none."""
        protected = site.strategy.protected()
        for session in site.view.sessions.values():
            if session.session_id not in protected and not session.pinned_line:
                continue
            if any(fits(known, flow) for known in session.assessment.flows):
                return session.session_id
        return ""

    # ------------------------------------------------------------ time

    def tick(self, now: float) -> list[Effect]:
        """Ends what is not renewed, not believable, or quiet."""
        effects: list[Effect] = []
        for site in self._sites.values():
            for session in list(site.view.sessions.values()):
                if now >= session.expires_at:
                    seconds = session.assessment.time_to_live_ms / 1000
                    effects += self._end(session.session_id, f"no report for {seconds:g} s", now)
                    continue
                why = contradiction(session, site.view.flows_of(session.session_id), now)
                if why:
                    session.distrusted_until = now + DISTRUST_S
                    session.assessment = replace(session.assessment, critical=False)
                    session.critical_since = None
                    reason = f"its reports contradict the counters: {why}"
                    effects += site.carry_out(
                        site.strategy.ended(session.session_id, reason, site.view, now), now
                    )
            effects += self._sweep(site, now)
        return effects

    def _sweep(self, site: Site, now: float) -> list[Effect]:
        """Steered rules have no idle time-out of their own."""
        effects: list[Effect] = []
        for state in [s for s in site.view.flows.values() if s.role == "steered"]:
            if now - state.active_at > QUIET_S:
                effects.append(site.forget(state))
            elif not state.session_id and now - state.since > ADOPTED_S:
                effects += site.hand_back(state)
        return effects

    def _end(self, session_id: str, reason: str, now: float) -> list[Effect]:
        name = self._site_of.pop(session_id, None)
        if name is None:
            return []
        site = self._sites[name]
        effects = site.carry_out(site.strategy.ended(session_id, reason, site.view, now), now)
        site.view.sessions.pop(session_id, None)
        site.unsay(session_id)
        for state in site.view.flows_of(session_id):
            effects += site.hand_back(state)
        return effects

    # ------------------------------------------------------------ the operator

    def steer(self, session_id: str, line: str, now: float, *, pin: bool) -> list[Effect]:
        """Moves a session to a line, and (pin) keeps it there."""
        site, session = self._find(session_id)
        site.line(line)
        if not site.view.lines[line].usable:
            raise InvalidValueError(
                f"line of site {site.name}",
                line,
                "a line that is up and not drained: "
                + (", ".join(x.name for x in site.view.lines.values() if x.usable) or "none now"),
            )
        if session.pinned_line not in ("", line) and not pin:
            raise InvalidValueError(
                f"session {session_id}",
                f"pinned to {session.pinned_line}",
                "one that is not pinned: release it first",
            )
        effects: list[Effect] = []
        if pin:
            effects += site.carry_out(
                site.strategy.ended(session_id, "the operator pins it", site.view, now), now
            )
            session.pinned_line = line
        reason = "pinned by the operator" if pin else "steered by the operator"
        return effects + self._to_line(site, session, line, reason, now)

    def release(self, session_id: str, now: float) -> list[Effect]:
        """Ends a session's protection and its pin."""
        site, session = self._find(session_id)
        effects = site.carry_out(
            site.strategy.ended(session_id, "released by the operator", site.view, now), now
        )
        if session.pinned_line:
            decision = Decision(
                DecisionKind.RELEASE, now, site.name, "unpinned by the operator", "operator", session_id,
                from_line=session.pinned_line,
            )  # fmt: skip
            session.pinned_line = ""
            effects += site.carry_out([decision], now)
        return effects

    def _to_line(self, site: Site, session: SessionState, line: str, reason: str, now: float) -> list[Effect]:
        if not site.view.lines[line].usable:  # dead, or drained since: the strategy decides meanwhile
            return []
        name = session.session_id
        moves = [
            Decision(DecisionKind.STEER, now, site.name, reason, "operator", name, s.flow, s.line, line)
            for s in site.view.flows_of(name)
            if s.line != line or s.role != "steered"
        ]
        return site.carry_out(moves, now)

    def _find(self, session_id: str) -> tuple[Site, SessionState]:
        name = self._site_of.get(session_id)
        if name is None:
            known = ", ".join(sorted(self._site_of)[:20]) or "none is known now"
            raise InvalidValueError("session_id", session_id[:65], known)
        site = self._sites[name]
        return site, site.view.sessions[session_id]
