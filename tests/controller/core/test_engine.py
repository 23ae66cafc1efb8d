"""The engine: sessions, lines that die, restarts, and the operator's word."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fluid import Fluid, Player, address, flow

from steerline_contract.errors import InvalidValueError
from steerline_contract.flows import TCP, UDP, FiveTuple, Link
from steerline_contract.playback import PlayerState
from steerline_contract.steering import Assessment, Decision, DecisionKind
from steerline_controller.core import events as ev
from steerline_controller.core.config import LivenessSettings, SiteConfig
from steerline_controller.core.effects import Announce, PlaceFlow, SetSpread
from steerline_controller.core.engine import Engine
from steerline_controller.core.snapshot import Resolution

LINES = ("line1", "line2", "line3")
# For tests that send no probes.
PATIENT = LivenessSettings(silent_after_s=1e9)


def engine(
    strategy: str = "buffer-threshold", connect: bool = True, liveness: LivenessSettings = PATIENT
) -> Engine:
    site = SiteConfig("home", tuple(Link(name, 10_000_000) for name in LINES))
    made = Engine([site], strategy, liveness=liveness)
    if connect:
        for side in ("A", "B"):
            made.handle(ev.SwitchConnected("home", side, dict.fromkeys(LINES, True)), 0.0)
    return made


def assessment(*flows: FiveTuple, **change: object) -> Assessment:
    base = Assessment(
        "s1", PlayerState.PLAYING, 10_000, True, 5_000_000, 2_860_000, 20_000, 35_000, 5_000, flows=flows
    )
    return replace(base, **change)  # type: ignore[arg-type]


def placed(effects: list[object]) -> dict[FiveTuple, tuple[str, str]]:
    return {e.flow: (e.line, e.role) for e in effects if isinstance(e, PlaceFlow)}


def said(effects: list[object]) -> list[Decision]:
    return [e.message for e in effects if isinstance(e, Announce) and isinstance(e.message, Decision)]


def test_a_new_flow_is_placed_once_and_again_when_a_side_idled_out() -> None:
    """The same flow arriving twice gets the same line."""
    made = engine()
    first = placed(made.handle(ev.FlowArrived("home", "A", flow(1, 1)), 1.0))
    second = placed(made.handle(ev.FlowArrived("home", "B", flow(1, 1)), 1.1))
    assert first == second
    assert next(iter(first.values()))[1] == "best-effort"


def test_a_critical_session_is_steered_and_its_protection_ends_without_reports() -> None:
    """Steered at the report; five seconds of silence and it is best effort again, with the reason."""
    made = engine()
    made.handle(ev.FlowArrived("home", "A", flow(1, 1)), 1.0)
    effects = made.handle(ev.Assessed(assessment(flow(1, 1))), 2.0)
    assert placed(effects)[flow(1, 1)][1] == "steered"
    assert made.handle(ev.Tick(), 6.9) == []
    effects = made.handle(ev.Tick(), 7.1)
    assert placed(effects)[flow(1, 1)][1] == "best-effort"
    assert any("no report for 5 s" in d.reason for d in said(effects))
    assert made.snapshot().sessions == ()


def test_quit_ends_protection_at_once() -> None:
    """A viewer who leaves gives the line back with that report."""
    made = engine()
    made.handle(ev.FlowArrived("home", "A", flow(1, 1)), 1.0)
    made.handle(ev.Assessed(assessment(flow(1, 1))), 2.0)
    effects = made.handle(ev.Assessed(assessment(player_state=PlayerState.QUIT, critical=False)), 3.0)
    assert any(d.kind is DecisionKind.RELEASE for d in said(effects))


def test_a_flow_that_the_agent_opens_later_joins_its_session_at_once() -> None:
    """A new connection between the hosts of a protected session goes to its line before any report."""
    made = engine()
    made.handle(ev.FlowArrived("home", "A", flow(1, 1)), 1.0)
    line = placed(made.handle(ev.Assessed(assessment(flow(1, 1))), 2.0))[flow(1, 1)][0]
    assert placed(made.handle(ev.FlowArrived("home", "A", flow(1, 2)), 2.1))[flow(1, 2)] == (line, "steered")


def test_a_flow_the_session_no_longer_names_is_handed_back() -> None:
    """A connection that left the session becomes best effort where it is."""
    made = engine()
    for port in (1, 2):
        made.handle(ev.FlowArrived("home", "A", flow(1, port)), 1.0)
    made.handle(ev.Assessed(assessment(flow(1, 1), flow(1, 2))), 2.0)
    effects = made.handle(ev.Assessed(assessment(flow(1, 1))), 6.0)
    assert placed(effects)[flow(1, 2)][1] == "best-effort"


def test_sessions_that_share_connections_share_a_line() -> None:
    """Two tabs of one browser name the same connections: they stay on one line, whoever reports."""
    made = engine()
    both = (flow(1, 1), flow(1, 2))
    for one in both:
        made.handle(ev.FlowArrived("home", "A", one), 1.0)
    needy = assessment(*both, need_bps=7_000_000)
    line = placed(made.handle(ev.Assessed(needy), 2.0))[both[0]][0]
    for second in range(3, 20):
        for name in ("s1", "s2"):
            effects = made.handle(ev.Assessed(replace(needy, session_id=name)), float(second))
            assert {where for where, _ in placed(effects).values()} <= {line}
        assert not placed(made.handle(ev.Tick(), second + 0.5))


def test_a_tab_that_needs_nothing_takes_no_connection_from_one_that_does() -> None:
    """A paused tab that names a critical one's connections leaves them steered."""
    made = engine()
    made.handle(ev.FlowArrived("home", "A", flow(1, 1)), 1.0)
    made.handle(ev.Assessed(assessment(flow(1, 1))), 2.0)
    for second in range(3, 20):
        paused = assessment(flow(1, 1), session_id="s2", critical=False, player_state=PlayerState.PAUSED)
        effects = [*made.handle(ev.Assessed(paused), float(second)), *made.handle(ev.Tick(), second + 0.1)]
        effects += made.handle(ev.Assessed(assessment(flow(1, 1))), second + 0.2)
        assert not placed(effects)


def test_behind_translation_the_media_flow_is_found_by_what_it_carries() -> None:
    """Rewritten ports: same public address, server, port and protocol, and bytes like media."""
    made = engine()
    media, chat = flow(1, 61000), flow(1, 61001)
    for new in (media, chat):
        made.handle(ev.FlowArrived("home", "A", new), 1.0)
    for second in (2.0, 3.0, 4.0):
        counters = {media: int(second * 300_000), chat: int(second * 10)}
        made.handle(ev.CountersRead("home", "B", counters, {}), second)
    effects = made.handle(ev.Assessed(assessment(flow(1, 4444), translated=True)), 4.5)
    assert set(placed(effects)) == {media}
    assert made.snapshot().sessions[0].resolution is Resolution.TRANSLATED


def test_of_a_connection_only_its_server_need_be_known() -> None:
    """No port but TCP's is known (a browser without the host): QUIC is at whatever port carries media."""
    told_tcp, told_quic = flow(1, 0), replace(flow(1, 0), protocol=UDP, server_port=0)
    quic = replace(flow(1, 50_000), protocol=UDP, server_port=8443)
    for media, others in (
        (flow(1, 40_000), [replace(flow(1, 40_001), server_port=22), flow(2, 40_002)]),
        (quic, [flow(1, 40_001), replace(quic, client=address("198.18.1.99"))]),
    ):
        made = engine()
        for new in (media, *others):
            made.handle(ev.FlowArrived("home", "A", new), 1.0)
        for second in (2.0, 3.0, 4.0):
            counters = {media: int(second * 300_000)} | {idle: int(second * 10) for idle in others}
            made.handle(ev.CountersRead("home", "B", counters, {}), second)
        effects = made.handle(ev.Assessed(assessment(told_tcp, told_quic)), 4.5)
        assert set(placed(effects)) == {media}
        later = replace(media, client_port=50_001)
        assert placed(made.handle(ev.FlowArrived("home", "A", later), 4.6))[later] == placed(effects)[media]


def test_two_sessions_of_one_household_do_not_take_each_others_flows() -> None:
    """What one session names exactly is not found for another by likeness."""
    made = engine()
    mine, other = flow(1, 61000), flow(1, 61001)
    for new in (mine, other):
        made.handle(ev.FlowArrived("home", "A", new), 1.0)
    made.handle(ev.Assessed(assessment(mine, session_id="exact")), 1.5)
    made.handle(ev.Assessed(assessment(flow(1, 4444), session_id="vague", translated=True)), 1.6)
    owners = {f.flow: f.session_id for f in made.snapshot().flows}
    assert owners == {mine: "exact", other: "vague"}


def test_an_exact_tuple_is_never_widened() -> None:
    """Without translation an unknown five-tuple finds nothing, and nothing is moved."""
    made = engine()
    made.handle(ev.FlowArrived("home", "A", flow(1, 1)), 1.0)
    effects = made.handle(ev.Assessed(assessment(flow(1, 2))), 2.0)
    assert placed(effects) == {}
    assert made.snapshot().sessions[0].resolution is Resolution.NONE


@pytest.mark.parametrize("side", ["A", "B"])
def test_carrier_lost_on_either_side_empties_the_line_at_once(side: str) -> None:
    """Every flow of the line is elsewhere in the same step; the spread leaves it out."""
    made = engine("round-robin")
    for port in range(9):
        made.handle(ev.FlowArrived("home", "A", flow(1, port + 1)), 1.0)
    effects = made.handle(ev.PortChanged("home", side, "line2", False), 2.0)
    assert len(placed(effects)) == 3
    assert "line2" not in {line for line, _ in placed(effects).values()}
    spread = [e for e in effects if isinstance(e, SetSpread)][-1]
    assert spread.weights["line2"] == 0
    back = made.handle(ev.PortChanged("home", side, "line2", True), 3.0)
    assert len(placed(back)) == 3


def silence(made: Engine, dead: str, until: float) -> list[object]:
    effects: list[object] = []
    now = 5.0
    while now < until:
        for name in LINES:
            for side in ("A", "B"):
                if not (name == dead and side == "A"):
                    made.handle(ev.ProbeArrived("home", side, name), now)
        effects += made.handle(ev.Tick(), now)
        now += 0.2
    return effects


def test_a_line_that_lets_nothing_out_is_left_within_three_seconds() -> None:
    """One direction silent, carrier everywhere: the line counts as dead after at most 3 s."""
    made = engine("round-robin", liveness=LivenessSettings())
    for port in range(6):
        made.handle(ev.FlowArrived("home", "A", flow(1, port + 1)), 1.0)
    silence(made, "none", 6.0)
    effects = silence(made, "line3", 8.9)
    assert len(placed(effects)) == 2
    assert any("lets nothing out" in d.reason for d in said(effects))


def test_a_controller_that_stood_still_blames_no_line() -> None:
    """After a pause of ten seconds the lines are still up."""
    made = engine(liveness=LivenessSettings())
    silence(made, "none", 8.0)
    assert made.handle(ev.Tick(), 18.0) == []
    assert {line.status.name for line in made.line_states()} == {"UP"}


def test_a_restarted_controller_adopts_the_rules_it_finds() -> None:
    """Nothing is re-placed; steered rules wait for their session and are handed back if it is silent."""
    made = engine(connect=False)
    rules = (
        ev.InstalledRule(flow(1, 1), "line3", "steered"),
        ev.InstalledRule(flow(2, 2), "line2", "best-effort"),
    )
    effects: list[object] = []
    for side in ("A", "B"):
        effects += made.handle(ev.SwitchConnected("home", side, dict.fromkeys(LINES, True), rules), 100.0)
    assert placed(effects) == {}
    assert {f.flow: f.line for f in made.snapshot().flows} == {flow(1, 1): "line3", flow(2, 2): "line2"}
    made.handle(ev.Tick(), 109.0)
    assert placed(made.handle(ev.Tick(), 111.0)) == {flow(1, 1): ("line3", "best-effort")}


def test_sides_that_disagree_after_a_crash_are_made_to_agree() -> None:
    """A move that only one switch heard is completed."""
    made = engine(connect=False)
    up = dict.fromkeys(LINES, True)
    made.handle(
        ev.SwitchConnected("home", "A", up, (ev.InstalledRule(flow(1, 1), "line1", "best-effort"),)), 1.0
    )
    effects = made.handle(
        ev.SwitchConnected("home", "B", up, (ev.InstalledRule(flow(1, 1), "line2", "best-effort"),)), 1.0
    )
    assert placed(effects) == {flow(1, 1): ("line1", "best-effort")}


def test_pin_holds_against_the_strategy_and_release_ends_it() -> None:
    """A pinned session stays where the operator put it, critical or not."""
    made = engine()
    made.handle(ev.FlowArrived("home", "A", flow(1, 1)), 1.0)
    made.handle(ev.Assessed(assessment(flow(1, 1), critical=False, buffer_length_ms=40_000)), 1.5)
    effects = made.handle(ev.PinSession("s1", "line3"), 2.0)
    assert placed(effects)[flow(1, 1)] == ("line3", "steered")
    assert placed(made.handle(ev.Assessed(assessment(flow(1, 1))), 2.5)) == {}
    assert made.snapshot().sessions[0].pinned
    effects = made.handle(ev.ReleaseSession("s1"), 3.0)
    assert any(d.kind is DecisionKind.RELEASE for d in said(effects))
    assert not made.snapshot().sessions[0].pinned


def test_a_pinned_session_is_not_steered_elsewhere() -> None:
    """The next report would bring it back: the operator hears that it is pinned."""
    made = engine()
    made.handle(ev.FlowArrived("home", "A", flow(1, 1)), 1.0)
    made.handle(ev.Assessed(assessment(flow(1, 1), critical=False, buffer_length_ms=40_000)), 1.5)
    made.handle(ev.PinSession("s1", "line3"), 2.0)
    with pytest.raises(InvalidValueError, match=r"pinned to line3.*release it first"):
        made.handle(ev.SteerSession("s1", "line2"), 2.5)


def test_a_drained_line_takes_nothing_from_a_pin() -> None:
    """What is pinned there leaves with the rest, new flows too, and nothing can be pinned to it."""
    made = engine()
    made.handle(ev.FlowArrived("home", "A", flow(1, 1)), 1.0)
    calm = assessment(flow(1, 1), critical=False, buffer_length_ms=40_000)
    made.handle(ev.Assessed(calm), 1.5)
    made.handle(ev.PinSession("s1", "line3"), 2.0)
    assert placed(made.handle(ev.DrainLine("home", "line3", True), 2.5))[flow(1, 1)][0] != "line3"
    assert placed(made.handle(ev.Assessed(calm), 3.0)) == {}
    assert placed(made.handle(ev.FlowArrived("home", "A", flow(1, 2)), 3.5))[flow(1, 2)][0] != "line3"
    with pytest.raises(InvalidValueError, match="not drained: line1, line2"):
        made.handle(ev.PinSession("s1", "line3"), 4.0)
    made.handle(ev.DrainLine("home", "line3", False), 4.5)
    assert placed(made.handle(ev.Assessed(calm), 5.0))[flow(1, 1)] == ("line3", "steered")


@pytest.mark.parametrize(
    ("command", "known"),
    [
        (ev.PinSession("nobody", "line1"), "none is known"),
        (ev.DrainLine("home", "line9", True), "line1, line2, line3"),
        (ev.DrainLine("away", "line1", True), "home"),
    ],
)
def test_an_operator_who_names_what_is_not_there_hears_what_is(command: ev.Event, known: str) -> None:
    """The error names the thing and what exists; nothing changes."""
    made = engine()
    before = made.snapshot()
    with pytest.raises(InvalidValueError, match=known):
        made.handle(command, 1.0)
    assert made.snapshot() == before


def test_a_drained_line_is_left_and_takes_nothing_until_given_back() -> None:
    """Drain moves flows off; a new flow avoids the line; undrain opens it."""
    made = engine("round-robin")
    for port in range(6):
        made.handle(ev.FlowArrived("home", "A", flow(1, port + 1)), 1.0)
    effects = made.handle(ev.DrainLine("home", "line1", True), 2.0)
    assert len(placed(effects)) == 2
    for port in range(6):
        new = placed(made.handle(ev.FlowArrived("home", "A", flow(2, port + 1)), 3.0))
        assert next(iter(new.values()))[0] != "line1"
    made.handle(ev.DrainLine("home", "line1", False), 4.0)
    assert made.line_states()[0].status.name == "UP"


def test_a_session_that_says_it_starves_on_plenty_loses_protection() -> None:
    """Ten times the media rate arrives, the buffer is said to stay at 5 s: not believed for a while."""
    made = engine()
    made.handle(ev.FlowArrived("home", "A", flow(1, 1)), 0.0)
    effects: list[object] = []
    for second in range(1, 40):
        now = float(second)
        made.handle(ev.CountersRead("home", "B", {flow(1, 1): second * 3_500_000}, {}), now)
        effects += made.handle(ev.Assessed(assessment(flow(1, 1), buffer_length_ms=5_000)), now)
        effects += made.handle(ev.Tick(), now)
    assert any("contradict the counters" in d.reason for d in said(effects))
    assert not made.snapshot().sessions[0].protected


def test_a_session_that_is_fed_by_nothing_loses_protection() -> None:
    """A player that plays for a minute without a byte is not one."""
    made = engine()
    made.handle(ev.FlowArrived("home", "A", flow(1, 1)), 0.0)
    effects: list[object] = []
    for second in range(1, 40):
        now = float(second)
        made.handle(ev.CountersRead("home", "B", {flow(1, 1): 1000 + second}, {}), now)
        effects += made.handle(ev.Assessed(assessment(flow(1, 1), buffer_length_ms=15_000)), now)
        effects += made.handle(ev.Tick(), now)
    assert any("contradict the counters" in d.reason for d in said(effects))


def test_an_honest_player_is_believed() -> None:
    """A whole experiment of the fluid network never raises a contradiction."""
    net = Fluid("buffer-threshold")
    player = Player("video", flow(11, 4000))
    net.start(player.flow, player)
    for i in range(50):
        net.run(20 + i)
        net.start(flow(101, 5000 + i, "198.19.0.2"))
    net.run(200)
    assert not [d for d in net.decisions if "contradict" in d.reason]


def test_flows_of_any_protocol_are_placed() -> None:
    """UDP, and protocols without ports, are flows too."""
    made = engine()
    udp = FiveTuple(UDP, address("198.18.1.1"), 5, address("198.19.0.1"), 443)
    icmp = FiveTuple(1, address("198.18.1.1"), 0, address("198.19.0.1"), 0)
    for new in (udp, icmp, replace(udp, protocol=TCP)):
        assert new in placed(made.handle(ev.FlowArrived("home", "A", new), 1.0))
    assert len(made.snapshot().flows) == 3


def test_unlike_capacities_reach_the_group_as_small_weights() -> None:
    """Weights keep the capacities' ratio and fit sixteen bits."""
    site = SiteConfig("home", (Link("a", 10_000_000), Link("b", 1_000_000_000), Link("c", 30_000_000_000)))
    made = Engine([site], "round-robin")
    effects = made.handle(ev.SwitchConnected("home", "A", {"a": True, "b": True, "c": True}), 0.0)
    weights = [e for e in effects if isinstance(e, SetSpread)][-1].weights
    assert max(weights.values()) <= 65535
    assert weights["b"] == 100 * weights["a"]
    assert weights["c"] == 30 * weights["b"]
