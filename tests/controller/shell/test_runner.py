"""The runner on fake switches and a fake engine: order, repetition, confirmation, cabling."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from steerline.steering.v1.steering_pb2 import ConnectResponse
from steerline_contract.flows import UDP, FiveTuple, LineState, LineStatus
from steerline_contract.playback import PlayerState
from steerline_contract.steering import Assessment, Decision, DecisionKind
from steerline_controller.core import effects as ef
from steerline_controller.core import events as ev
from steerline_controller.core.snapshot import Resolution, SessionView, Snapshot
from steerline_controller.shell.clock import Clock
from steerline_controller.shell.inputs import (
    Asked,
    Inbox,
    PortInfo,
    PortNews,
    Raw,
    Said,
    Shown,
    SwitchDown,
    SwitchUp,
    UnknownNameError,
)
from steerline_controller.shell.openflow import cookies, packets, wire
from steerline_controller.shell.openflow.fake import FakeSwitch
from steerline_controller.shell.publish import CAPACITY, Publisher
from steerline_controller.shell.runner import Runner, Timing
from steerline_controller.shell.switch import SwitchPlan

ONE, TWO = ipaddress.ip_address("198.18.0.11"), ipaddress.ip_address("198.18.0.101")
PORTS = {"l1": PortInfo(1, True), "l2": PortInfo(2, True), "e1": PortInfo(3, True), "e2": PortInfo(4, True)}


class FakeEngine:
    """Round-robin, and a memory of what it was told."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []
        self.lines = ["line1", "line2"]

    def handle(self, event: ev.Event, now: float) -> list[ef.Effect]:
        """Places what arrives; steers what an assessment names."""
        self.events.append(event)
        if isinstance(event, ev.FlowArrived):
            self.lines.reverse()
            return [ef.PlaceFlow(event.site, event.flow, self.lines[0], "best-effort")]
        if isinstance(event, ev.Assessed):
            return [ef.PlaceFlow("home", flow, "line2", "steered") for flow in event.assessment.flows]
        if isinstance(event, ev.ReleaseSession):
            decision = Decision(DecisionKind.RELEASE, now, "home", "asked", "operator", event.session_id)
            return [ef.Announce(decision)]
        return []

    def of(self, kind: type) -> list[Any]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def line_states(self) -> Sequence[LineState]:
        """One line."""
        return [LineState("home", "line1", 10_000, LineStatus.UP, 0, 0, 0)]

    def snapshot(self) -> Snapshot:
        """One session."""
        session = SessionView("s1", "home", False, False, "line1", False, Resolution.NONE, 0, 0)
        return Snapshot("fake", sessions=(session,))


class Bench:
    """A runner with two fake switches; what switches answer is fed back by `settle`."""

    def __init__(self, mode: Any = "reactive") -> None:
        self.engine = FakeEngine()
        self.inbox: Inbox = Inbox()
        self.publisher = Publisher()
        plans = [
            SwitchPlan("home", side, number, (("line1", "l1"), ("line2", "l2")), ("e1", "e2"), ())
            for side, number in (("A", 0xA1), ("B", 0xB1))
        ]
        self.runner = Runner(
            self.engine, plans, mode, Timing(), self.inbox, self.publisher, Clock()
        )  # fmt: skip
        self.log: list[str] = []
        self.switches: dict[str, FakeSwitch] = {}
        self.now = 1000.0

    def connect(self, side: str, switch: FakeSwitch | None = None) -> FakeSwitch:
        """A switch connects."""
        made = switch or FakeSwitch({1: True, 2: True, 3: True, 4: True})
        self.switches[side] = made
        made._answer = lambda message: self.inbox.put(Raw(made, message, 77))
        send = made.send

        def logged(data: bytes, /) -> None:
            self.log.append(side)
            send(data)

        made.send = logged  # type: ignore[method-assign]
        self.take(SwitchUp(made, 0xA1 if side == "A" else 0xB1, PORTS))
        return made

    def take(self, item: Any) -> None:
        """One input, and everything that follows from it."""
        self.inbox.put(item)
        while not self.inbox.empty():
            self.runner.take(self.inbox.get(), self.now)
            self.runner.flush()

    def packet_in(self, side: str, data: bytes, port: int = 3, table: int = 1) -> None:
        """A switch hands a packet over."""
        match = struct.pack("!HHIIxxxx", 1, 12, 0x80000004, port)
        body = struct.pack("!IHBBQ", 0xFFFFFFFF, len(data), 0, table, 0) + match + b"\0\0" + data
        self.take(Raw(self.switches[side], struct.pack("!BBHI", 4, 10, 8 + len(body), 0) + body, 1))


def udp(source: int = 5, to_b: bool = True, target_mac: bytes = b"\2\0\0\0\0\x99") -> bytes:
    """A UDP packet between the two hosts."""
    ends = (ONE, TWO) if to_b else (TWO, ONE)
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, UDP, 0, ends[0].packed, ends[1].packed)
    ports = (source, 80) if to_b else (80, source)
    return target_mac + b"\2\0\0\0\0\1" + b"\x08\x00" + header + struct.pack("!HHHH", *ports, 8, 0)


def flow(source: int = 5) -> FiveTuple:
    """The flow of those packets."""
    return FiveTuple(UDP, ONE, source, TWO, 80)


@pytest.fixture
def bench() -> Bench:
    """Both switches connected."""
    made = Bench()
    made.connect("A")
    made.connect("B")
    made.log.clear()
    return made


def rules_of(switch: FakeSwitch, source: int = 5) -> list[Any]:
    """The rules of one flow."""
    return [r for r in switch.rules if source in (r[2].get("udp_src"), r[2].get("udp_dst"))]


@pytest.mark.parametrize(("side", "order"), [("A", ["B", "A"]), ("B", ["A", "B"])])
def test_the_way_back_comes_first(bench: Bench, side: str, order: list[str]) -> None:
    """A new flow's rule for the way back is on the far switch before its first packet goes on."""
    bench.packet_in(side, udp(to_b=side == "A"))
    assert bench.log == order
    assert bench.engine.of(ev.FlowArrived) == [ev.FlowArrived("home", side, flow())]  # type: ignore[arg-type]
    assert bench.switches[side].packets_out == [(2, udp(to_b=side == "A"))]
    for at, name in (("A", "udp_src"), ("B", "udp_dst")):
        ((_, _, match, _),) = rules_of(bench.switches[at])
        assert match[name] == 5


def test_packets_on_their_way_do_not_ask_again(bench: Bench) -> None:
    """Packets of a flow that was just placed are sent on without a decision; much later they ask again."""
    for _ in range(5):
        bench.packet_in("A", udp())
    assert len(bench.engine.of(ev.FlowArrived)) == 1
    assert len(bench.switches["A"].packets_out) == 5
    bench.now += 2
    bench.packet_in("A", udp())
    assert len(bench.engine.of(ev.FlowArrived)) == 2


def test_fallback_sends_nothing_twice() -> None:
    """With fallback the switch has forwarded the packet itself: the controller sends none."""
    bench = Bench("reactive-with-fallback")
    bench.connect("A")
    bench.connect("B")
    bench.packet_in("A", udp())
    assert bench.engine.of(ev.FlowArrived)
    assert bench.switches["A"].packets_out == []


def test_learning_and_moving_hosts(bench: Bench) -> None:
    """A host is learnt from what it sends, and forgotten where it was when it appears elsewhere."""
    arp = b"\xff" * 6 + b"\2\0\0\0\0\7" + b"\x08\x06" + bytes(28)

    def learnt(side: str) -> list[Any]:
        return [r for r in bench.switches[side].rules if r[2].get("eth_dst") == "02:00:00:00:00:07"]

    bench.packet_in("A", arp)
    assert len(learnt("A")) == 2
    bench.packet_in("A", udp(target_mac=b"\2\0\0\0\0\7"), port=4)  # a neighbour: delivered, not placed
    assert not bench.engine.of(ev.FlowArrived)
    assert bench.switches["A"].packets_out[-1][0] == 3
    bench.packet_in("B", arp)
    assert (learnt("A"), len(learnt("B"))) == ([], 2)


def test_enforced_when_all_barriers_are_in(bench: Bench) -> None:
    """One confirmation, to all who listen, with the time of the last reply; none where nothing moved."""
    mine, other = (bench.publisher.add(name, lambda: None) for name in ("mine", "other"))
    assessment = Assessment("s1", PlayerState.PLAYING, 1, True, 1, 1, 1, 2, 5000, flows=(flow(),),
                            received_monotonic_ns=42)  # fmt: skip
    replies: list[bytes] = []
    bench.switches["A"]._answer = replies.append
    bench.switches["B"]._answer = replies.append
    bench.take(Said(assessment))
    barriers = [r for r in replies if r[1] == 21]
    assert len(barriers) == 2
    for switch, reply, at in zip(bench.switches.values(), barriers[::-1], (100, 200), strict=True):
        assert mine.take() == []
        bench.take(Raw(switch, reply, at))
    (message,) = mine.take()
    assert message.enforced.received_monotonic_ns == 42
    assert message.enforced.enforced_monotonic_ns == 200
    assert message.enforced.moved_flow_count == 1
    assert len(other.take()) == 1
    quiet = Assessment("s2", PlayerState.PLAYING, 1, True, 1, 1, 1, 2, 5000)
    bench.take(Said(quiet))
    assert mine.take() == []


def test_placed_flows_outlive_a_switch(bench: Bench) -> None:
    """A switch that comes back empty is told its flows again; one that comes back full loses only strays."""
    bench.packet_in("A", udp())
    full = bench.switches["A"]
    bench.take(SwitchDown(full, "test"))
    bench.now += 5
    empty = bench.connect("A")
    assert len(rules_of(empty)) == 1
    assert bench.engine.of(ev.SwitchLost)
    bench.take(SwitchDown(empty, "test"))
    bench.now += 5
    bench.connect("A", empty)
    (event,) = bench.engine.of(ev.SwitchConnected)[-1:]
    assert event.rules == (ev.InstalledRule(flow(), "line2", "best-effort"),)
    assert len(rules_of(empty)) == 1
    assert len({rule[3] & 0xFFFFFF for rule in empty.rules}) == 1


def test_a_new_controller_keeps_what_it_finds(bench: Bench) -> None:
    """Rules found are kept by both switches unless the engine forgets them; what nobody placed goes."""
    bench.packet_in("A", udp())
    lone = udp(source=6)
    bench.packet_in("A", lone)
    old = dict(bench.switches)
    old["B"].send(wire.forget_flow(1, flow(6), "B"))
    stray = wire.place_flow(1, flow(7), "A", 99, cookies.pack(cookies.Kind.BEST_EFFORT, 0xABCDEF), 0, False)
    old["A"].send(stray)
    fresh = Bench()
    for side in ("B", "A"):
        fresh.connect(side, old[side])
    for side in ("A", "B"):
        assert len(rules_of(old[side], 5)) == 1
        assert len(rules_of(old[side], 6)) == 1
        assert rules_of(old[side], 7) == []
        assert len({rule[3] & 0xFFFFFF for rule in old[side].rules}) == 1


def test_a_port_with_a_new_number(bench: Bench) -> None:
    """A line's port that comes back under another number is used, by the pipeline and by placed flows."""
    bench.packet_in("A", udp())
    bench.packet_in("A", udp(source=6))
    channel = bench.switches["A"]
    channel.ports_up[9] = True
    for port in (None, PortInfo(9, True)):
        bench.take(PortNews(channel, "l2", port))
    assert [e.up for e in bench.engine.of(ev.PortChanged)] == [False, True]
    packet = {"eth_type": 0x800, "eth_dst": "02:00:00:00:00:99", "ipv4_src": str(ONE), "ipv4_dst": str(TWO),
              "ip_proto": UDP, "udp_dst": 80}  # fmt: skip
    assert channel.outcomes(3, packet | {"udp_src": 5}) == {frozenset({9})}
    assert channel.outcomes(3, packet | {"udp_src": 6}) == {frozenset({1})}
    assert channel.outcomes(9, {"eth_type": 0x806, "eth_dst": "ff:ff:ff:ff:ff:ff"}) == {frozenset({3, 4})}


def test_probes_and_cabling(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """A probe counts where its line ends; out of another line it is a cabling error, said once."""
    bench.runner.probe(bench.now)
    bench.runner.flush()
    sent = dict(bench.switches["A"].packets_out)
    assert set(sent) == {1, 2}
    bench.packet_in("B", sent[1], port=1, table=0)
    assert bench.engine.of(ev.ProbeArrived) == [ev.ProbeArrived("home", "B", "line1")]
    for _ in range(2):
        bench.packet_in("B", sent[2], port=1, table=0)
    foreign = packets.probe_frame(packets.Probe(0, 0, "A", 1), b"not ours")
    bench.packet_in("B", foreign, port=1, table=0)
    assert len(bench.engine.of(ev.ProbeArrived)) == 1
    assert capsys.readouterr().out.count("cabling") == 1


def test_operators_are_answered(bench: Bench) -> None:
    """A wish gives its decisions; an unknown name an error that says what exists; the state can be seen."""
    answer: Future[Any] = Future()
    bench.take(Asked(ev.ReleaseSession("s1"), answer))
    (decision,) = answer.result(0)
    assert decision.reason == "asked"
    for event, said in (
        (ev.ReleaseSession("s2"), "session 's2' is not known; there are: s1"),
        (ev.PinSession("s1", "line3"), "line 'line3' of site 'home' does not exist; there are: line1, line2"),
        (ev.DrainLine("away", "line1", True), "site 'away' does not exist; there are: home"),
    ):
        refused: Future[Any] = Future()
        bench.take(Asked(event, refused))
        with pytest.raises(UnknownNameError, match=said):
            refused.result(0)
    shown: Future[Snapshot] = Future()
    bench.take(Shown(shown))
    assert shown.result(0).strategy == "fake"


def test_a_slow_station_loses_the_oldest() -> None:
    """What waits for one station is bounded; the newest stays."""
    publisher = Publisher()
    stream = publisher.add("slow", lambda: None)
    for number in range(CAPACITY + 10):
        response = ConnectResponse()
        response.advice.sustainable_bps = number
        publisher.tell_all(response)
    waiting = stream.take()
    assert len(waiting) == CAPACITY
    assert waiting[-1].advice.sustainable_bps == CAPACITY + 9
    assert stream.dropped == 10


def test_nonsense_closes_that_connection_alone(bench: Bench) -> None:
    """A switch that sends a malformed hot message is cut off; the other stays."""
    bench.take(Raw(bench.switches["A"], struct.pack("!BBHI", 4, 10, 12, 0) + b"oops", 1))
    assert bench.switches["A"].closed
    assert not bench.switches["B"].closed
