"""The engine: one event in, effects out.

`now` is in seconds since the epoch on a clock that never jumps (anchored once, monotonic after).
The engine owns the view of every site; strategies read it and answer with decisions; the engine
carries them out on the view and says what the shell must do. Nothing here waits, logs or fails on
outside input: a wrong operator's command raises InvalidValueError and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from steerline_contract.errors import InvalidValueError
from steerline_contract.flows import LineState
from steerline_controller.core import events as ev
from steerline_controller.core.config import LivenessSettings, SiteConfig, StrategySettings
from steerline_controller.core.effects import Effect
from steerline_controller.core.sessions import Sessions
from steerline_controller.core.site import Site
from steerline_controller.core.snapshot import PlacedFlowView, SessionView, Snapshot

OBSERVE_EVERY_S = 1.0


class Engine:
    """All sites of one controller."""

    def __init__(
        self,
        sites: Sequence[SiteConfig],
        strategy: str,
        settings: StrategySettings | None = None,
        liveness: LivenessSettings | None = None,
    ) -> None:
        settings = settings or StrategySettings()
        self.strategy = strategy
        self._sites = {
            site.name: Site(site, strategy, settings, liveness or LivenessSettings()) for site in sites
        }
        self._sessions = Sessions(self._sites)
        self._observed_at: float | None = None

    def handle(self, event: ev.Event, now: float) -> list[Effect]:
        """Takes one event. Raises InvalidValueError when an operator names what is not there."""
        effects = _HANDLERS[type(event)](self, event, now)
        for site in self._sites.values():
            effects += site.spread(now)
        return effects

    # ------------------------------------------------------------ events of the network

    def _switch_connected(self, event: ev.SwitchConnected, now: float) -> list[Effect]:
        return self._site(event.site).switch_connected(event.side, event.lines_up, event.rules, now)

    def _switch_lost(self, event: ev.SwitchLost, now: float) -> list[Effect]:  # noqa: ARG002
        self._site(event.site).switch_lost(event.side)
        return []

    def _port_changed(self, event: ev.PortChanged, now: float) -> list[Effect]:
        return self._site(event.site).port_changed(event.side, event.line, event.up, now)

    def _flow_arrived(self, event: ev.FlowArrived, now: float) -> list[Effect]:
        site = self._site(event.site)
        return site.flow_arrived(event.flow, self._sessions.host_of(event.flow, site), now)

    def _flow_ended(self, event: ev.FlowEnded, now: float) -> list[Effect]:
        return self._site(event.site).flow_ended(event.side, event.flow, now)

    def _counters_read(self, event: ev.CountersRead, now: float) -> list[Effect]:
        self._site(event.site).counters_read(event.side, event.flows, event.lines, now)
        return []

    def _probe_arrived(self, event: ev.ProbeArrived, now: float) -> list[Effect]:
        self._site(event.site).probe_arrived(event.side, event.line, now)
        return []

    def _tick(self, event: ev.Tick, now: float) -> list[Effect]:  # noqa: ARG002
        effects: list[Effect] = []
        for site in self._sites.values():
            effects += site.tick(now)
        effects += self._sessions.tick(now)
        if self._observed_at is None or now - self._observed_at >= OBSERVE_EVERY_S:
            self._observed_at = now
            for site in self._sites.values():
                effects += site.observe(now)
        return effects

    # ------------------------------------------------------------ the station and the operator

    def _assessed(self, event: ev.Assessed, now: float) -> list[Effect]:
        return self._sessions.assessed(event.assessment, now)

    def _steer_session(self, event: ev.SteerSession, now: float) -> list[Effect]:
        return self._sessions.steer(event.session_id, event.line, now, pin=False)

    def _pin_session(self, event: ev.PinSession, now: float) -> list[Effect]:
        return self._sessions.steer(event.session_id, event.line, now, pin=True)

    def _release_session(self, event: ev.ReleaseSession, now: float) -> list[Effect]:
        return self._sessions.release(event.session_id, now)

    def _drain_line(self, event: ev.DrainLine, now: float) -> list[Effect]:
        return self._site(event.site).drain(event.line, event.drain, now)

    def _site(self, name: str) -> Site:
        try:
            return self._sites[name]
        except KeyError:
            raise InvalidValueError("site", name, ", ".join(self._sites)) from None

    # ------------------------------------------------------------ what others may see

    def line_states(self) -> list[LineState]:
        """Every line as it was in the last second."""
        return [state for site in self._sites.values() for state in site.line_states()]

    def snapshot(self) -> Snapshot:
        """Everything at this moment, as values."""
        flows: list[PlacedFlowView] = []
        sessions: list[SessionView] = []
        for site in self._sites.values():
            protected = site.strategy.protected()
            flows += [
                PlacedFlowView(
                    site.name,
                    state.flow,
                    state.line,
                    state.session_id,
                    int(state.down_bps),
                    int(state.up_bps),
                    state.reason,
                    state.since,
                )
                for state in site.view.flows.values()
            ]
            for session in site.view.sessions.values():
                own = site.view.flows_of(session.session_id)
                sessions.append(
                    SessionView(
                        session.session_id,
                        site.name,
                        session.assessment.critical,
                        session.session_id in protected,
                        protected.get(session.session_id) or (own[0].line if own else ""),
                        bool(session.pinned_line),
                        session.resolution,
                        session.assessment.buffer_length_ms,
                        session.assessment.need_bps,
                    )
                )
        return Snapshot(self.strategy, tuple(self.line_states()), tuple(flows), tuple(sessions))


_HANDLERS: dict[type, Callable[[Engine, Any, float], list[Effect]]] = {
    ev.SwitchConnected: Engine._switch_connected,  # pyright: ignore[reportPrivateUsage]
    ev.SwitchLost: Engine._switch_lost,  # pyright: ignore[reportPrivateUsage]
    ev.PortChanged: Engine._port_changed,  # pyright: ignore[reportPrivateUsage]
    ev.FlowArrived: Engine._flow_arrived,  # pyright: ignore[reportPrivateUsage]
    ev.FlowEnded: Engine._flow_ended,  # pyright: ignore[reportPrivateUsage]
    ev.CountersRead: Engine._counters_read,  # pyright: ignore[reportPrivateUsage]
    ev.ProbeArrived: Engine._probe_arrived,  # pyright: ignore[reportPrivateUsage]
    ev.Assessed: Engine._assessed,  # pyright: ignore[reportPrivateUsage]
    ev.SteerSession: Engine._steer_session,  # pyright: ignore[reportPrivateUsage]
    ev.PinSession: Engine._pin_session,  # pyright: ignore[reportPrivateUsage]
    ev.ReleaseSession: Engine._release_session,  # pyright: ignore[reportPrivateUsage]
    ev.DrainLine: Engine._drain_line,  # pyright: ignore[reportPrivateUsage]
    ev.Tick: Engine._tick,  # pyright: ignore[reportPrivateUsage]
}
