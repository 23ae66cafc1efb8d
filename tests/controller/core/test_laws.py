"""Laws of the engine under any order of events."""

from __future__ import annotations

from fluid import address
from hypothesis import given, settings
from hypothesis import strategies as st

from steerline_contract.errors import InvalidValueError
from steerline_contract.flows import TCP, FiveTuple, Link
from steerline_contract.playback import PlayerState
from steerline_contract.steering import Assessment
from steerline_controller.core import events as ev
from steerline_controller.core.config import SiteConfig, StrategySettings
from steerline_controller.core.effects import ForgetFlow, PlaceFlow
from steerline_controller.core.engine import Engine
from steerline_controller.core.strategies import STRATEGIES

LINES = ("line1", "line2", "line3")

sides = st.sampled_from(["A", "B"])
lines = st.sampled_from(LINES)
flows = st.builds(
    lambda host, port, server: FiveTuple(
        TCP, address(f"198.18.1.{host}"), port, address(f"198.19.0.{server}"), 80
    ),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 2),
)
session_ids = st.sampled_from(["s1", "s2", "s3"])
assessments = st.builds(
    Assessment,
    session_id=session_ids,
    player_state=st.sampled_from(list(PlayerState)),
    buffer_length_ms=st.integers(0, 60_000),
    critical=st.booleans(),
    need_bps=st.integers(0, 20_000_000),
    play_bps=st.integers(0, 20_000_000),
    low_ms=st.just(20_000),
    high_ms=st.just(35_000),
    time_to_live_ms=st.integers(1, 10_000),
    time_to_empty_ms=st.none() | st.integers(0, 60_000),
    flows=st.lists(flows, max_size=3).map(tuple),
    translated=st.booleans(),
)
events = st.one_of(
    st.builds(ev.FlowArrived, st.just("home"), sides, flows),
    st.builds(ev.FlowEnded, st.just("home"), sides, flows),
    st.builds(ev.PortChanged, st.just("home"), sides, lines, st.booleans()),
    st.builds(ev.ProbeArrived, st.just("home"), sides, lines),
    st.builds(
        ev.CountersRead,
        st.just("home"),
        sides,
        st.dictionaries(flows, st.integers(0, 10**8)),
        st.dictionaries(lines, st.tuples(st.integers(0, 10**9), st.integers(0, 10**9))),
    ),
    st.builds(ev.Assessed, assessments),
    st.builds(ev.SteerSession, session_ids, lines),
    st.builds(ev.PinSession, session_ids, lines),
    st.builds(ev.ReleaseSession, session_ids),
    st.builds(ev.DrainLine, st.just("home"), lines, st.booleans()),
    st.builds(ev.SwitchLost, st.just("home"), sides),
    st.builds(
        ev.SwitchConnected,
        st.just("home"),
        sides,
        st.dictionaries(lines, st.booleans()),
        st.lists(
            st.builds(ev.InstalledRule, flows, lines, st.sampled_from(["best-effort", "steered"])), max_size=4
        ).map(tuple),
    ),
    st.just(ev.Tick()),
)
stories = st.lists(st.tuples(st.floats(0, 3), events), max_size=60)
kinds = st.sampled_from(sorted(STRATEGIES))
modes = st.sampled_from(["round-robin", "single"])


def make(kind: str, mode: str) -> Engine:
    site = SiteConfig("home", tuple(Link(n, (i + 1) * 5_000_000) for i, n in enumerate(LINES)))
    engine = Engine([site], kind, StrategySettings(best_effort=mode, seed=7))  # type: ignore[arg-type]
    for side in ("A", "B"):
        engine.handle(ev.SwitchConnected("home", side, dict.fromkeys(LINES, True)), 0.0)
    return engine


def tell(engine: Engine, event: ev.Event, now: float) -> list[object]:
    try:
        return list(engine.handle(event, now))
    except InvalidValueError:
        assert isinstance(event, ev.SteerSession | ev.PinSession | ev.ReleaseSession)
        return []


@settings(max_examples=300, deadline=None)
@given(kinds, modes, stories)
def test_any_story_leaves_the_switches_as_the_view_says(
    kind: str, mode: str, story: list[tuple[float, ev.Event]]
) -> None:
    """No event order raises; what was told to the switches is what the snapshot shows, on lines alive."""
    engine = make(kind, mode)
    rules: dict[FiveTuple, str] = {}
    now = 0.0
    for gap, event in story:
        now += gap
        if isinstance(event, ev.SwitchConnected):
            for rule in event.rules:
                rules.setdefault(rule.flow, rule.line)
        before = {f.flow for f in engine.snapshot().flows}
        for effect in tell(engine, event, now):
            if isinstance(effect, PlaceFlow):
                rules[effect.flow] = effect.line
            elif isinstance(effect, ForgetFlow):
                rules.pop(effect.flow, None)
        shown = {f.flow: f.line for f in engine.snapshot().flows}
        for gone in before - set(shown):
            rules.pop(gone, None)
        assert {flow: rules.get(flow) for flow in shown} == shown
        alive = {s.line for s in engine.line_states() if s.status.name in ("UP", "DRAINING")}
        if alive:
            assert set(shown.values()) <= alive
        assert {p.line for p in engine.snapshot().sessions if p.protected} <= set(LINES)


@settings(max_examples=100, deadline=None)
@given(kinds, modes, stories)
def test_the_same_events_give_the_same_decisions(
    kind: str, mode: str, story: list[tuple[float, ev.Event]]
) -> None:
    """Recorded events replayed through a fresh core give equal effects."""
    told: list[list[list[object]]] = []
    for _ in range(2):
        engine, now, effects = make(kind, mode), 0.0, []
        for gap, event in story:
            now += gap
            effects.append(tell(engine, event, now))
        told.append(effects)
    assert told[0] == told[1]
