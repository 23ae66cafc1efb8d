"""The one thread that decides: inputs and time into events, effects onto the switches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from queue import Empty
from typing import Final, Protocol

import structlog

from steerline.steering.v1.steering_pb2 import ConnectResponse
from steerline_contract import wire as words
from steerline_contract.flows import FiveTuple, LineState
from steerline_contract.steering import Decision, Enforced, NetworkAdvice
from steerline_controller.core.effects import Announce, Effect, ForgetFlow, PlaceFlow, SetSpread
from steerline_controller.core.events import (
    Assessed,
    Event,
    FlowArrived,
    FlowEnded,
    PortChanged,
    ProbeArrived,
    Role,
    Side,
    SwitchConnected,
    SwitchLost,
    Tick,
)
from steerline_controller.core.snapshot import Snapshot
from steerline_controller.shell import counters, operator
from steerline_controller.shell.clock import Clock
from steerline_controller.shell.inputs import (
    Asked,
    Channel,
    Inbox,
    Input,
    PortNews,
    Raw,
    Said,
    Shown,
    Stop,
    SwitchDown,
    SwitchUp,
)
from steerline_controller.shell.openflow import cookies, encode, packets, parse, wire
from steerline_controller.shell.openflow.pipeline import Mode
from steerline_controller.shell.publish import Publisher
from steerline_controller.shell.record import Record
from steerline_controller.shell.switch import Switch, SwitchPlan

LOG = structlog.get_logger()

TICK_S: Final = 0.2
PROBE_S: Final = 0.4
PUBLISH_S: Final = 1.0
# A flow's packets that are still on their way to us when its rule is set do not ask again.
SETTLED_S: Final = 1.0


class EngineLike(Protocol):
    """What the runner needs of the engine."""

    def handle(self, event: Event, now: float) -> list[Effect]:
        """One event in, effects out."""
        ...

    def line_states(self) -> Sequence[LineState]:
        """Every line as it was in the last second."""
        ...

    def snapshot(self) -> Snapshot:
        """Everything, for operators."""
        ...


@dataclass(slots=True)
class _Placed:
    line: str
    role: Role
    at_s: float
    sides: set[Side] = field(default_factory=set[Side])


@dataclass(slots=True)
class _Enforcing:
    """An assessment whose effects the switches have not confirmed yet."""

    session_id: str
    received_ns: int
    moved: int
    waiting: set[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Timing:
    """How often what is done. Seconds."""

    idle_timeout_s: int = 30
    statistics_s: float = 1.0


class Runner:
    """Owns the engine, the switches and what is placed. `run` ends with Stop, or with an exception."""

    def __init__(
        self,
        engine: EngineLike,
        plans: Sequence[SwitchPlan],
        mode: Mode,
        timing: Timing,
        inbox: Inbox,
        publisher: Publisher,
        clock: Clock,
        record: Record | None = None,
    ) -> None:
        self._engine = engine
        self._plans = {plan.datapath_id: plan for plan in plans}
        self._sites = list(dict.fromkeys(plan.site for plan in plans))
        self._mode: Mode = mode
        self._timing = timing
        self._inbox = inbox
        self._publisher = publisher
        self._clock = clock
        self._record = record
        self._switches: dict[tuple[str, Side], Switch] = {}
        self._by_channel: dict[int, Switch] = {}
        self._placed: dict[str, dict[FiveTuple, _Placed]] = {site: {} for site in self._sites}
        self._spread: dict[str, SetSpread] = {}
        self._counters: dict[int, counters.Collector] = {}
        self._enforcing: list[_Enforcing] = []
        self._token = os.urandom(packets.TOKEN_LENGTH)
        self._probe_number = 0
        self._miswired: set[tuple[str, str, str]] = set()
        self._arrived_at: Side = "A"

    # ------------------------------------------------------------ the loop

    def run(self) -> str:
        """Takes inputs until Stop; its reason."""
        now = self._clock.now()
        due = {self._tick: now, self._probe: now, self._ask_counters: now, self._publish: now}
        every = {
            self._tick: TICK_S,
            self._probe: PROBE_S,
            self._ask_counters: self._timing.statistics_s,
            self._publish: PUBLISH_S,
        }
        while True:
            now = self._clock.now()
            for work, at in due.items():
                if at <= now:
                    # What was missed (a suspended machine) is not made up for.
                    due[work] = max(at + every[work], now)
                    work(now)
                    self._flush()
            try:
                item = self._inbox.get(timeout=max(0.0, min(due.values()) - self._clock.now()))
            except Empty:
                continue
            if isinstance(item, Stop):
                return item.reason
            self.take(item, self._clock.now())
            self._flush()

    def take(self, item: Input, now: float) -> None:
        """Handles one input."""
        match item:
            case Raw():
                self._raw(item, now)
            case Said():
                self._said(item, now)
            case SwitchUp():
                self._switch_up(item)
            case SwitchDown():
                self._switch_down(item, now)
            case PortNews():
                self._port_news(item, now)
            case Asked():
                operator.answer(
                    item, self._engine.snapshot(), self._line_names(), lambda event: self._decide(event, now)
                )
            case Shown():
                item.answer.set_result(self._engine.snapshot())
            case Stop():
                pass

    def _flush(self) -> None:
        # The far side of what just arrived first: its rule for the way back must not come too late.
        order: tuple[Side, Side] = ("B", "A") if self._arrived_at == "A" else ("A", "B")
        for side in order:
            for site in self._sites:
                switch = self._switches.get((site, side))
                if switch is not None:
                    switch.flush()

    def _line_names(self) -> dict[str, list[str]]:
        return {plan.site: [name for name, _ in plan.lines] for plan in self._plans.values()}

    # ------------------------------------------------------------ deciding

    def _decide(self, event: Event, now: float) -> list[Effect]:
        effects = self._engine.handle(event, now)
        self._apply(effects, now)
        return effects

    def _apply(self, effects: Iterable[Effect], now: float) -> None:
        for effect in effects:
            match effect:
                case PlaceFlow():
                    self._place(effect, now)
                case ForgetFlow():
                    self._placed[effect.site].pop(effect.flow, None)
                    for side in ("A", "B"):
                        if switch := self._switches.get((effect.site, side)):
                            switch.forget(effect.flow)
                case SetSpread():
                    self._spread[effect.site] = effect
                    for side in ("A", "B"):
                        if switch := self._switches.get((effect.site, side)):
                            switch.set_spread(effect.weights, effect.discovery_line)
                case Announce(message):
                    self._announce(message, now)

    def _place(self, effect: PlaceFlow, now: float) -> None:
        placed = _Placed(effect.line, effect.role, now)
        self._placed[effect.site][effect.flow] = placed
        for side in ("B", "A"):
            switch = self._switches.get((effect.site, side))
            if switch is not None and switch.place(effect.flow, effect.line, effect.role):
                placed.sides.add(side)

    def _announce(self, message: Decision | NetworkAdvice, now: float) -> None:
        if self._record is not None:
            self._record.put(now, message)
        if self._publisher.count:
            if isinstance(message, Decision):
                response = ConnectResponse(decision=words.decision_message(message))
            else:
                response = ConnectResponse(advice=words.advice_message(message))
            self._publisher.tell_all(response)

    def _said(self, item: Said, now: float) -> None:
        effects = self._decide(Assessed(item.assessment), now)
        moved = [e for e in effects if isinstance(e, PlaceFlow | ForgetFlow)]
        if not moved:
            return
        waiting: set[tuple[int, int]] = set()
        for site in {effect.site for effect in moved}:
            for side in ("A", "B"):
                if switch := self._switches.get((site, side)):
                    waiting.add((id(switch.channel), switch.barrier()))
        if waiting:
            assessment = item.assessment
            self._enforcing.append(
                _Enforcing(
                    assessment.session_id,
                    assessment.received_monotonic_ns,
                    sum(isinstance(e, PlaceFlow) for e in moved),
                    waiting,
                )
            )

    # ------------------------------------------------------------ switches come and go

    def allowed(self, datapath_id: int) -> str:
        """Why a datapath id may not connect; "" when it may. Any thread may ask."""
        if datapath_id in self._plans:
            return ""
        configured = ", ".join(f"{known:016x} ({plan.title})" for known, plan in self._plans.items())
        return f"datapath id {datapath_id:016x} is not configured; allowed: {configured}"

    def _switch_up(self, item: SwitchUp) -> None:
        plan = self._plans[item.datapath_id]
        old = self._switches.get((plan.site, plan.side))
        if old is not None:
            LOG.warning("a switch connects again: the newer connection counts", switch=plan.title)
            self._by_channel.pop(id(old.channel), None)
            old.channel.close()
        switch = Switch(plan, item.channel, item.ports, self._mode, self._timing.idle_timeout_s)
        self._switches[plan.site, plan.side] = switch
        self._by_channel[id(item.channel)] = switch
        self._counters[id(item.channel)] = counters.Collector(plan.site, plan.side)
        spread = self._spread.get(plan.site)
        switch.start(spread.weights if spread else {}, spread.discovery_line if spread else "")

    def _switch_down(self, item: SwitchDown, now: float) -> None:
        switch = self._by_channel.pop(id(item.channel), None)
        self._counters.pop(id(item.channel), None)
        self._enforcing = [
            e for e in self._enforcing if not any(channel == id(item.channel) for channel, _ in e.waiting)
        ]
        if switch is None:
            return
        plan = switch.plan
        del self._switches[plan.site, plan.side]
        LOG.warning("switch lost; its rules stay", switch=plan.title, why=item.reason)
        if switch.ready:
            self._decide(SwitchLost(plan.site, plan.side), now)

    def _read_back(self, switch: Switch, message: bytes, now: float) -> None:
        found = switch.read_back(message)
        if found is None:
            return
        plan = switch.plan
        self._decide(SwitchConnected(plan.site, plan.side, switch.lines_up(), found.rules), now)
        switch.ready = True
        for flow, placed in self._placed[plan.site].items():
            if placed.at_s < now and switch.place(flow, placed.line, placed.role):
                placed.sides.add(plan.side)
        strays = switch.delete_strays()
        LOG.info(
            "switch ready",
            switch=plan.title,
            datapath_id=f"{plan.datapath_id:016x}",
            peer=switch.channel.peer,
            rules_found=len(found.rules),
            old_cookies=strays,
        )

    def _port_news(self, item: PortNews, now: float) -> None:
        switch = self._by_channel.get(id(item.channel))
        if switch is None:
            return
        plan = switch.plan
        before = switch.lines_up()
        if switch.port_changed(item.name, item.port):
            for flow, placed in self._placed[plan.site].items():
                if (placed.line, item.name) in plan.lines:
                    switch.place(flow, placed.line, placed.role)
        if switch.ready:
            for line, up in switch.lines_up().items():
                if up != before[line]:
                    LOG.info("carrier", switch=plan.title, line=line, up=up)
                    self._decide(PortChanged(plan.site, plan.side, line, up), now)

    # ------------------------------------------------------------ the hot messages

    def _raw(self, item: Raw, now: float) -> None:
        switch = self._by_channel.get(id(item.channel))
        if switch is None:
            return
        try:
            kind = item.message[1]
            if kind == wire.PACKET_IN:
                self._packet_in(switch, parse.packet_in(item.message), now)
            elif kind == wire.BARRIER_REPLY:
                self._barrier_reply(item)
            elif kind == wire.MULTIPART_REPLY:
                self._multipart(switch, item.message, now)
            elif kind == wire.FLOW_REMOVED:
                self._flow_removed(switch, parse.removed_rule(item.message), now)
            elif kind == wire.ERROR:
                self._error(switch, item.message)
        except parse.MalformedMessageError as error:
            LOG.error("a switch sent nonsense: connection closed", switch=switch.plan.title, error=str(error))
            item.channel.close()

    def _packet_in(self, switch: Switch, packet: parse.PacketIn, now: float) -> None:
        frame = packets.read_frame(packet.data)
        if frame is None:
            return
        plan = switch.plan
        if frame.kind == "probe":
            self._probe_arrived(switch, packet.in_port, frame.payload, now)
            return
        if not switch.is_edge(packet.in_port):
            return
        self._learn(switch, frame.source_mac, packet.in_port)
        flow = packets.flow_of(frame, plan.side)
        if flow is None:
            return
        # The first packet to a neighbour can come before the rules that its ARP answer led to.
        neighbour = switch.learnt.get(packet.data[:6])
        if neighbour is not None:
            if len(packet.data) == packet.total_length:
                switch.packet_out(packet.in_port, neighbour, packet.data)
            return
        self._arrived_at = plan.side
        placed = self._placed[plan.site].get(flow)
        if placed is None or plan.side not in placed.sides or now - placed.at_s > SETTLED_S:
            self._decide(FlowArrived(plan.site, plan.side, flow), now)
            placed = self._placed[plan.site].get(flow)
        if self._mode == "reactive" and placed is not None:
            port = switch.port_of_line.get(placed.line)
            if port is not None:
                switch.packet_out(packet.in_port, port, packet.data)

    def _learn(self, switch: Switch, mac: bytes, port: int) -> None:
        if mac[0] & 1 or not switch.learn(mac, port):
            return
        other = self._switches.get((switch.plan.site, "B" if switch.plan.side == "A" else "A"))
        if other is not None:
            other.unlearn(mac)

    def _barrier_reply(self, item: Raw) -> None:
        key = (id(item.channel), int.from_bytes(item.message[4:8], "big"))
        for enforcing in self._enforcing:
            if key in enforcing.waiting:
                enforcing.waiting.remove(key)
                if not enforcing.waiting:
                    self._enforcing.remove(enforcing)
                    done = Enforced(enforcing.session_id, enforcing.received_ns, item.at_ns, enforcing.moved)
                    # To all: whoever measures the controller listens beside the station.
                    self._publisher.tell_all(ConnectResponse(enforced=words.enforced_message(done)))
                return

    def _multipart(self, switch: Switch, message: bytes, now: float) -> None:
        kind, _more = parse.multipart(message)
        if kind == wire.MULTIPART_FLOW and not switch.ready:
            self._read_back(switch, message, now)
            return
        collector = self._counters.get(id(switch.channel))
        if collector is None:
            return
        event = collector.take(message, switch.line_of_port)
        if event is not None:
            self._decide(event, now)

    def _flow_removed(self, switch: Switch, removed: parse.RemovedRule, now: float) -> None:
        plan = switch.plan
        cookie = cookies.unpack(removed.cookie)
        flow = parse.flow_of_match(removed.match, plan.side)
        placed = self._placed[plan.site].get(flow) if flow else None
        # What we deleted ourselves, and what has become a steered flow since, did not end.
        if flow is None or placed is None or cookie is None or placed.role != "best-effort":
            return
        placed.sides.discard(plan.side)
        if not placed.sides:
            del self._placed[plan.site][flow]
        self._decide(FlowEnded(plan.site, plan.side, flow), now)

    def _error(self, switch: Switch, message: bytes) -> None:
        kind, code, refused = parse.error(message)
        if (kind, code) == (6, 0):  # GROUP_MOD_FAILED, GROUP_EXISTS: `put_group` counts on it
            return
        LOG.error(
            "a switch refused a message",
            switch=switch.plan.title,
            error=encode.describe_error(kind, code),
            message_type=refused[1] if len(refused) > 1 else None,
        )

    # ------------------------------------------------------------ by the clock

    def _tick(self, now: float) -> None:
        self._decide(Tick(), now)

    def _probe(self, _now: float) -> None:
        self._probe_number = (self._probe_number + 1) & 0xFFFFFFFF
        for (site, side), switch in self._switches.items():
            for line in switch.line_ports:
                probe = packets.Probe(self._sites.index(site), line.index, side, self._probe_number)
                switch.packet_out(wire.ANY - 2, line.port, packets.probe_frame(probe, self._token))

    def _probe_arrived(self, switch: Switch, in_port: int, payload: bytes, now: float) -> None:
        probe = packets.read_probe(payload, self._token)
        line = switch.line_of_port.get(in_port)
        if probe is None or line is None:
            return
        plan = switch.plan
        sent_on = (
            plan.lines[probe.line_index][0]
            if probe.site_index == self._sites.index(plan.site) and probe.line_index < len(plan.lines)
            else f"another site ({self._sites[probe.site_index]})"
        )
        if sent_on != line or probe.side == plan.side:
            key = (plan.title, line, f"{sent_on} of {probe.side}")
            if key not in self._miswired:
                self._miswired.add(key)
                LOG.error("cabling: a line's frames come out elsewhere", at=key[0], line=line, sent_on=key[2])
            return
        self._decide(ProbeArrived(plan.site, plan.side, line), now)

    def _ask_counters(self, _now: float) -> None:
        for switch in self._switches.values():
            if switch.ready:
                switch.ask_counters()

    def _publish(self, _now: float) -> None:
        if self._publisher.count:
            for state in self._engine.line_states():
                self._publisher.tell_all(ConnectResponse(line_state=words.line_state_message(state)))

    def channel_of(self, site: str, side: Side) -> Channel | None:
        """The connection to a switch, for tests."""
        switch = self._switches.get((site, side))
        return switch.channel if switch else None
