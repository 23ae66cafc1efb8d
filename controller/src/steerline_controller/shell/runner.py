"""The one thread that decides: inputs and time into events, effects onto the switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty
from typing import Final, Protocol

import structlog

from steerline.steering.v1.steering_pb2 import ConnectResponse
from steerline_contract import wire as words
from steerline_contract.flows import LineState
from steerline_contract.steering import Decision, NetworkAdvice
from steerline_controller.core.effects import Announce, Effect, ForgetFlow, PlaceFlow, SetSpread
from steerline_controller.core.events import (
    Assessed,
    Event,
    FlowArrived,
    FlowEnded,
    PortChanged,
    Side,
    SwitchConnected,
    SwitchLost,
    Tick,
)
from steerline_controller.core.snapshot import Snapshot
from steerline_controller.shell import counters, operator
from steerline_controller.shell.clock import Clock
from steerline_controller.shell.enforcing import Enforcing
from steerline_controller.shell.fabric import Fabric
from steerline_controller.shell.inputs import (
    Asked,
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
from steerline_controller.shell.probing import Prober
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


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: how long best-effort rules rest before they expire, how often counters are read."""

    idle_timeout_s: int = 30
    statistics_s: float = 1.0


class Runner:
    """Owns engine and switches. `run` ends with Stop, or with an exception."""

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
        self._mode: Mode = mode
        self._timing = timing
        self._inbox = inbox
        self._publisher = publisher
        self._clock = clock
        self._record = record
        self._fabric = Fabric(plans, mode, timing.idle_timeout_s)
        self._prober = Prober(self._fabric.sites)
        self._enforcing = Enforcing()
        self._counters: dict[int, counters.Collector] = {}
        self._arrived_at: Side = "A"

    def allowed(self, datapath_id: int) -> str:
        """Why a datapath id may not connect; "" when it may. Any thread may ask."""
        return self._fabric.refusal(datapath_id)

    # ------------------------------------------------------------ the loop

    def run(self) -> str:
        """Takes inputs until Stop; its reason."""
        every = {
            self.tick: TICK_S,
            self.probe: PROBE_S,
            self.ask_counters: self._timing.statistics_s,
            self.publish: PUBLISH_S,
        }
        due = dict.fromkeys(every, self._clock.now())
        while True:
            now = self._clock.now()
            for work, at in due.items():
                if at <= now:
                    # What was missed (a suspended machine) is not made up for.
                    due[work] = max(at + every[work], now)
                    work(now)
                    self.flush()
            try:
                item = self._inbox.get(timeout=max(0.0, min(due.values()) - self._clock.now()))
            except Empty:
                continue
            if isinstance(item, Stop):
                return item.reason
            self.take(item, self._clock.now())
            self.flush()

    def take(self, item: Input, now: float) -> None:
        """Handles one input."""
        match item:
            case Raw():
                self._raw(item, now)
            case Said():
                self._said(item, now)
            case SwitchUp():
                self._fabric.connect(item)
                if switch := self._fabric.of(item.channel):
                    self._counters[id(item.channel)] = counters.Collector(switch.plan.site, switch.plan.side)
            case SwitchDown():
                self._switch_down(item, now)
            case PortNews():
                self._port_news(item, now)
            case Asked():
                lines = self._fabric.lines
                operator.answer(item, self._engine.snapshot(), lines, lambda event: self._decide(event, now))
            case Shown():
                item.answer.set_result(self._engine.snapshot())
            case Stop():
                pass

    def flush(self) -> None:
        """Sends what the switches are to be told."""
        self._fabric.flush(last=self._arrived_at)

    # ------------------------------------------------------------ deciding

    def _decide(self, event: Event, now: float) -> list[Effect]:
        effects = self._engine.handle(event, now)
        for effect in effects:
            match effect:
                case PlaceFlow():
                    self._fabric.place(effect, now)
                case ForgetFlow():
                    self._fabric.forget(effect)
                case SetSpread():
                    self._fabric.spread(effect)
                case Announce(message):
                    self._announce(message, now)
        return effects

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
        moved = [effect for effect in effects if isinstance(effect, PlaceFlow | ForgetFlow)]
        if moved:
            placed = sum(isinstance(effect, PlaceFlow) for effect in moved)
            touched = [s for site in {effect.site for effect in moved} for s in self._fabric.at(site)]
            self._enforcing.expect(item.assessment, placed, touched)

    # ------------------------------------------------------------ switches

    def _switch_down(self, item: SwitchDown, now: float) -> None:
        self._counters.pop(id(item.channel), None)
        self._enforcing.lost(item.channel)
        switch = self._fabric.disconnect(item.channel)
        if switch is not None:
            LOG.warning("switch lost; its rules stay", switch=switch.plan.title, why=item.reason)
            if switch.ready:
                self._decide(SwitchLost(switch.plan.site, switch.plan.side), now)

    def _read_back(self, switch: Switch, message: bytes, now: float) -> None:
        found = switch.read_back(message)
        if found is None:
            return
        plan = switch.plan
        self._fabric.adopt(switch, found.rules)
        self._decide(SwitchConnected(plan.site, plan.side, switch.lines_up(), found.rules), now)
        strays = self._fabric.settle(switch, now)
        LOG.info(
            "switch ready",
            switch=plan.title,
            datapath_id=f"{plan.datapath_id:016x}",
            peer=switch.channel.peer,
            rules_found=len(found.rules),
            old_cookies=strays,
        )

    def _port_news(self, item: PortNews, now: float) -> None:
        switch = self._fabric.of(item.channel)
        if switch is None:
            return
        plan, before = switch.plan, switch.lines_up()
        self._fabric.port_news(switch, item)
        if switch.ready:
            for line, up in switch.lines_up().items():
                if up != before[line]:
                    LOG.info("carrier", switch=plan.title, line=line, up=up)
                    self._decide(PortChanged(plan.site, plan.side, line, up), now)

    # ------------------------------------------------------------ the hot messages

    def _raw(self, item: Raw, now: float) -> None:
        switch = self._fabric.of(item.channel)
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
            arrived = self._prober.arrived(switch, packet.in_port, frame.payload)
            if arrived is not None:
                self._decide(arrived, now)
            return
        if not switch.is_edge(packet.in_port):
            return
        self._fabric.learn(switch, frame.source_mac, packet.in_port)
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
        placed = self._fabric.placed(plan.site, flow)
        if placed is None or plan.side not in placed.sides or now - placed.at_s > SETTLED_S:
            self._decide(FlowArrived(plan.site, plan.side, flow), now)
            placed = self._fabric.placed(plan.site, flow)
        if self._mode == "reactive" and placed is not None:
            port = switch.port_of_line.get(placed.line)
            if port is not None:
                switch.packet_out(packet.in_port, port, packet.data)

    def _barrier_reply(self, item: Raw) -> None:
        xid = int.from_bytes(item.message[4:8], "big")
        done = self._enforcing.answered(item.channel, xid, item.at_ns)
        if done is not None:
            # To all: whoever measures the controller listens beside the station.
            self._publisher.tell_all(ConnectResponse(enforced=words.enforced_message(done)))

    def _multipart(self, switch: Switch, message: bytes, now: float) -> None:
        kind, _more = parse.multipart(message)
        if kind == wire.MULTIPART_FLOW and not switch.ready:
            self._read_back(switch, message, now)
            return
        event = self._counters[id(switch.channel)].take(message, switch.line_of_port)
        if event is not None:
            self._decide(event, now)

    def _flow_removed(self, switch: Switch, removed: parse.RemovedRule, now: float) -> None:
        flow = parse.flow_of_match(removed.match, switch.plan.side)
        if flow is None or cookies.unpack(removed.cookie) is None:
            return
        if self._fabric.ended(switch, flow):
            self._decide(FlowEnded(switch.plan.site, switch.plan.side, flow), now)

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

    def tick(self, now: float) -> None:
        """Tells the engine that time went on."""
        self._decide(Tick(), now)

    def probe(self, _now: float) -> None:
        """Sends a probe onto each line, in both directions."""
        self._prober.next_round()
        for switch in self._fabric.all():
            self._prober.send(switch)

    def ask_counters(self, _now: float) -> None:
        """Asks all switches for their counters."""
        for switch in self._fabric.all():
            if switch.ready:
                switch.ask_counters()

    def publish(self, _now: float) -> None:
        """Tells the stations how the lines are."""
        if self._publisher.count:
            for state in self._engine.line_states():
                self._publisher.tell_all(ConnectResponse(line_state=words.line_state_message(state)))
