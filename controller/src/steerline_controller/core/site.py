"""One site: its view, its strategy, and what events of its switches lead to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from math import gcd

from steerline_contract.errors import InvalidValueError
from steerline_contract.flows import FiveTuple, LineState
from steerline_contract.steering import Decision, DecisionKind, NetworkAdvice
from steerline_controller.core.config import LivenessSettings, SiteConfig, StrategySettings
from steerline_controller.core.effects import Announce, Effect, ForgetFlow, PlaceFlow, SetSpread
from steerline_controller.core.events import InstalledRule, Side
from steerline_controller.core.liveness import LineLiveness
from steerline_controller.core.rates import Rates
from steerline_controller.core.state import FlowState, LineView, SiteView
from steerline_controller.core.strategies import make
from steerline_controller.core.strategies.base import Answer, Placement

# The same Keep, or the same advice, is not said more often than this.
REPEAT_S = 10.0


class Site:
    """The engine's part for one site. All methods return effects in the order they must happen."""

    def __init__(
        self, config: SiteConfig, strategy: str, settings: StrategySettings, liveness: LivenessSettings
    ) -> None:
        self.name = config.name
        self.view = SiteView(config.name, {link.name: LineView(link) for link in config.lines})
        self.strategy = make(strategy, settings)
        self._liveness = {link.name: LineLiveness(liveness) for link in config.lines}
        self._carrier: dict[tuple[Side, str], bool] = {}
        self._connected: set[Side] = set()
        self._rates = Rates()
        self._spread: tuple[Mapping[str, int], str] | None = None
        self._said: dict[tuple[str, str], float] = {}

    # ------------------------------------------------------------ switches and lines

    def switch_connected(
        self, side: Side, lines_up: Mapping[str, bool], rules: Sequence[InstalledRule], now: float
    ) -> list[Effect]:
        """Adopts the rules found, restores those missing, and takes the lines' carriers."""
        self._connected.add(side)
        self._rates.forget(side)
        effects = self._adopt(rules, now)
        for name in self.view.lines:
            self._carrier[side, name] = lines_up.get(name, False)
        if self._connected >= {"A", "B"}:
            for liveness in self._liveness.values():
                liveness.watch(now)
        for name, line in self.view.lines.items():
            effects += self._refresh(name, now)
            if not line.alive:
                effects += self._leave(name, f"{name} is down", now)
        self._spread = None
        return effects

    def _adopt(self, rules: Sequence[InstalledRule], now: float) -> list[Effect]:
        effects: list[Effect] = []
        found: set[FiveTuple] = set()
        for rule in rules:
            found.add(rule.flow)
            known = self.view.flows.get(rule.flow)
            if known is None:
                if rule.line not in self.view.lines:
                    effects.append(ForgetFlow(self.name, rule.flow))
                    continue
                state = FlowState(
                    rule.flow, self.name, rule.line, rule.role, now, "found on the switch", active_at=now
                )
                self.view.add(state)
            elif (known.line, known.role) != (rule.line, rule.role):
                effects.append(self._rule(known))
        effects += [self._rule(s) for s in self.view.flows.values() if s.flow not in found and s.since < now]
        return effects

    def switch_lost(self, side: Side) -> None:
        """Its rules go on working; nothing can be said of its lines."""
        self._connected.discard(side)
        for liveness in self._liveness.values():
            liveness.rest()

    def port_changed(self, side: Side, line: str, up: bool, now: float) -> list[Effect]:
        """Carrier came or went."""
        if line not in self.view.lines:
            return []
        self._carrier[side, line] = up
        return self._refresh(line, now)

    def probe_arrived(self, side: Side, line: str, now: float) -> None:
        """A sign of life."""
        if line in self._liveness:
            self._liveness[line].probe(side, now)

    def drain(self, line: str, drain: bool, now: float) -> list[Effect]:
        """Takes a line out of use, or back."""
        view = self.line(line)
        if view.draining == drain:
            return []
        view.draining = drain
        reason = f"operator drains {line}" if drain else f"operator gives {line} back"
        decision = Decision(
            DecisionKind.STEER if drain else DecisionKind.RELEASE,
            now,
            self.name,
            reason,
            "operator",
            from_line=line,
        )
        return [Announce(decision), *(self._leave(line, reason, now) if drain else self._return(line, now))]

    def line(self, name: str) -> LineView:
        """A line by its name. Raises InvalidValueError."""
        try:
            return self.view.lines[name]
        except KeyError:
            raise InvalidValueError(f"line of site {self.name}", name, ", ".join(self.view.lines)) from None

    def _refresh(self, name: str, now: float) -> list[Effect]:
        """Brings a line's state up to date and its flows elsewhere, or back."""
        line = self.view.lines[name]
        usable, alive = line.usable, line.alive
        line.carrier = all(self._carrier.get((side, name), True) for side in ("A", "B"))
        line.silent = self._liveness[name].silent
        if (usable and not line.usable) or (alive and not line.alive):
            why = "lost its carrier" if not line.carrier else "lets nothing out"
            return self._leave(name, f"{name} {why}", now)
        if line.alive and not alive:
            return self._return(name, now)
        return []

    def _leave(self, name: str, reason: str, now: float) -> list[Effect]:
        """Everything on a line goes elsewhere: protected sessions first, as their strategy says."""
        effects: list[Effect] = []
        for session_id, guarded in self.strategy.protected().items():
            session = self.view.sessions.get(session_id)
            if guarded == name and session is not None:
                effects += self.carry_out(self.strategy.signal(session, self.view, now), now)
        for state in sorted(self.view.on_line(name), key=lambda s: (-s.down_bps, s.since)):
            placement = self.strategy.place(state.flow, state.session_id, self.view, now)
            if placement is None or placement.line == name:
                continue
            state.displaced_from = state.displaced_from or name
            effects += self._move(state, placement.line, f"{reason}; {placement.reason}", now)
        return effects

    def _return(self, name: str, now: float) -> list[Effect]:
        """A line is back: what was displaced from it returns, and what is stranded finds a line."""
        effects: list[Effect] = []
        welcome = self.strategy.weights(self.view, now).get(name, 0) > 0
        for state in list(self.view.flows.values()):
            stranded = not self.view.lines[state.line].alive
            if stranded:
                placement = self.strategy.place(state.flow, state.session_id, self.view, now)
                if placement is not None and placement.line != state.line:
                    effects += self._move(state, placement.line, f"{name} is back", now)
            elif state.displaced_from == name and welcome and not state.session_id:
                effects += self._move(state, name, f"{name} is back", now)
            if state.displaced_from == name:
                state.displaced_from = ""
        return effects

    # ------------------------------------------------------------ flows

    def flow_arrived(self, flow: FiveTuple, session_id: str, now: float) -> list[Effect]:
        """A new flow is placed; one that is known gets its rules again (one side's had idled out)."""
        known = self.view.flows.get(flow)
        if known is not None and self.view.lines[known.line].alive:
            known.ended_sides = frozenset()
            return [self._rule(known)]
        session = self.view.sessions.get(session_id)
        placement = self.strategy.place(flow, session_id, self.view, now)
        if session is not None and session.pinned_line and self.view.lines[session.pinned_line].usable:
            placement = Placement(session.pinned_line, f"session {session_id} is pinned", session_id)
        if placement is None:
            return []
        if known is not None:
            return self._move(known, placement.line, placement.reason, now)
        role = "steered" if placement.session_id else "best-effort"
        state = FlowState(
            flow,
            self.name,
            placement.line,
            role,
            now,
            placement.reason,
            placement.session_id,
            active_at=now,
            started_at=now,
        )
        self.view.add(state)
        return [self._rule(state), self._placed(state, "", now)]

    def flow_ended(self, side: Side, flow: FiveTuple, now: float) -> list[Effect]:  # noqa: ARG002
        """One side's rule is gone; the flow is, when both are."""
        state = self.view.flows.get(flow)
        if state is None:
            return []
        if state.role == "steered":
            return [self._rule(state)]
        state.ended_sides |= {side}
        if state.ended_sides >= {"A", "B"}:
            self.view.remove(flow)
        return []

    def forget(self, state: FlowState) -> Effect:
        """A flow is over, rules and all."""
        self.view.remove(state.flow)
        return ForgetFlow(self.name, state.flow)

    def hand_back(self, state: FlowState) -> list[Effect]:
        """A session's flow becomes best effort where it is."""
        state.session_id = ""
        if state.role == "best-effort":
            return []
        state.role = "best-effort"
        return [self._rule(state)]

    def _rule(self, state: FlowState) -> PlaceFlow:
        return PlaceFlow(self.name, state.flow, state.line, state.role)

    def _move(self, state: FlowState, line: str, reason: str, now: float) -> list[Effect]:
        before, state.line = state.line, line
        state.since, state.reason = now, reason
        if before != line:
            state.moved_at = now
        return [self._rule(state), self._placed(state, before, now)]

    def _placed(self, state: FlowState, before: str, now: float, strategy: str = "") -> Announce:
        return Announce(
            Decision(
                DecisionKind.STEER,
                now,
                self.name,
                state.reason,
                strategy or self.strategy.name,
                state.session_id,
                state.flow,
                before,
                state.line,
            )
        )

    # ------------------------------------------------------------ time

    def counters_read(
        self,
        side: Side,
        flows: Mapping[FiveTuple, int],
        lines: Mapping[str, tuple[int, int]],
        now: float,
    ) -> None:
        """Fresh counters of one switch."""
        self._rates.update(self.view, side, flows, lines, now)
        for name, (received, _) in lines.items():
            if name in self._liveness:
                self._liveness[name].count(side, received, now)

    def tick(self, now: float) -> list[Effect]:
        """Notices lines that fall silent or speak again."""
        effects: list[Effect] = []
        for name, liveness in self._liveness.items():
            if liveness.tick(now):
                effects += self._refresh(name, now)
        return effects

    def observe(self, now: float) -> list[Effect]:
        """Once a second the strategy looks."""
        return self.carry_out(self.strategy.observe(self.view, now), now)

    # ------------------------------------------------------------ carrying out what a strategy answers

    def carry_out(self, answers: Iterable[Answer], now: float) -> list[Effect]:
        """Writes decisions into the view and turns them into effects."""
        effects: list[Effect] = []
        for answer in answers:
            if isinstance(answer, NetworkAdvice):
                effects += self._say(("advice", answer.session_id), Announce(answer), now)
            elif answer.kind is DecisionKind.STEER and answer.flow is not None:
                state = self.view.flows[answer.flow]
                state.role = "steered" if answer.session_id else "best-effort"
                if answer.session_id:
                    state.session_id = answer.session_id
                    state.displaced_from = ""
                effects += self._move(state, answer.to_line, answer.reason, now)
            elif answer.kind is DecisionKind.KEEP:
                effects += self._say(("keep", answer.session_id), Announce(answer), now)
            else:
                effects.append(Announce(answer))
                for state in self.view.flows_of(answer.session_id):
                    if state.role == "steered":
                        state.role = "best-effort"
                        effects.append(self._rule(state))
        return effects

    def _say(self, key: tuple[str, str], effect: Effect, now: float) -> list[Effect]:
        if now - self._said.get(key, float("-inf")) < REPEAT_S:
            return []
        self._said[key] = now
        return [effect]

    def unsay(self, session_id: str) -> None:
        """A session is gone: forget when it was last spoken to."""
        self._said.pop(("keep", session_id), None)
        self._said.pop(("advice", session_id), None)

    # ------------------------------------------------------------ what the switches do on their own

    def spread(self, now: float) -> list[Effect]:
        """The select group's weights and the discovery line, when they changed."""
        if not self._connected:
            return []
        capacities = self.strategy.weights(self.view, now)
        divisor = reduce(gcd, [c for c in capacities.values() if c], 0) or 1
        largest = max(capacities.values(), default=0) // divisor
        # Group weights are 16 bits wide.
        scale = divisor * max(1, -(-largest // 65535))
        weights = {
            name: max(1, capacities[name] // scale) if capacities.get(name) else 0 for name in self.view.lines
        }
        alive = [line.name for line in self.view.lines.values() if line.alive]
        wanted = (weights, alive[0] if alive else "")
        if wanted == self._spread:
            return []
        self._spread = wanted
        return [SetSpread(self.name, *wanted)]

    def line_states(self) -> list[LineState]:
        """Every line as it was in the last second."""
        protected: dict[str, list[str]] = {}
        for session_id, name in self.strategy.protected().items():
            protected.setdefault(name, []).append(session_id)
        counts: dict[str, int] = {}
        for state in self.view.flows.values():
            counts[state.line] = counts.get(state.line, 0) + 1
        return [
            LineState(
                self.name,
                line.name,
                line.link.capacity_bps,
                line.status,
                int(line.down_bps),
                int(line.up_bps),
                counts.get(line.name, 0),
                tuple(protected.get(line.name, ())),
            )
            for line in self.view.lines.values()
        ]
