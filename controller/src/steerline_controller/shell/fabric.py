"""All switches of all sites, what is placed on them, and how an effect becomes messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import structlog

from steerline_contract.flows import FiveTuple
from steerline_controller.core.effects import ForgetFlow, PlaceFlow, SetSpread
from steerline_controller.core.events import InstalledRule, Role, Side
from steerline_controller.shell.inputs import Channel, PortNews, SwitchUp
from steerline_controller.shell.openflow.pipeline import Mode
from steerline_controller.shell.switch import Switch, SwitchPlan

LOG = structlog.get_logger()

SIDES: tuple[Side, Side] = ("A", "B")


def far(side: Side) -> Side:
    """The other side."""
    return "B" if side == "A" else "A"


@dataclass(slots=True)
class Placed:
    """A flow as the switches were last told. `sides`: where its rule is."""

    line: str
    role: Role
    at_s: float
    sides: set[Side] = field(default_factory=set[Side])


class Fabric:
    """Switches are told into their buffers; `flush` sends."""

    def __init__(self, plans: Sequence[SwitchPlan], mode: Mode, idle_timeout_s: int) -> None:
        self._plans = {plan.datapath_id: plan for plan in plans}
        self.sites = list(dict.fromkeys(plan.site for plan in plans))
        self.lines = {plan.site: [name for name, _ in plan.lines] for plan in plans}
        self._mode: Mode = mode
        self._idle_timeout_s = idle_timeout_s
        self._switches: dict[tuple[str, Side], Switch] = {}
        self._by_channel: dict[int, Switch] = {}
        self._placed: dict[str, dict[FiveTuple, Placed]] = {site: {} for site in self.sites}
        self._spread: dict[str, SetSpread] = {}

    # ------------------------------------------------------------ switches come and go

    def refusal(self, datapath_id: int) -> str:
        """Why a datapath id may not connect; "" when it may. Any thread may ask."""
        if datapath_id in self._plans:
            return ""
        configured = ", ".join(f"{known:016x} ({plan.title})" for known, plan in self._plans.items())
        return f"datapath id {datapath_id:016x} is not configured; allowed: {configured}"

    def connect(self, item: SwitchUp) -> None:
        """A switch is there: it is asked what it holds, and given the pipeline."""
        plan = self._plans[item.datapath_id]
        old = self._switches.get((plan.site, plan.side))
        if old is not None:
            LOG.warning("a switch connects again: the newer connection counts", switch=plan.title)
            self._by_channel.pop(id(old.channel), None)
            old.channel.close()
        switch = Switch(plan, item.channel, item.ports, self._mode, self._idle_timeout_s)
        self._switches[plan.site, plan.side] = switch
        self._by_channel[id(item.channel)] = switch
        spread = self._spread.get(plan.site)
        switch.start(spread.weights if spread else {}, spread.discovery_line if spread else "")

    def disconnect(self, channel: Channel) -> Switch | None:
        """A switch is gone; None when a newer connection to it counts."""
        switch = self._by_channel.pop(id(channel), None)
        if switch is not None:
            plan = switch.plan
            del self._switches[plan.site, plan.side]
            for placed in self._placed[plan.site].values():
                placed.sides.discard(plan.side)
        return switch

    def adopt(self, switch: Switch, rules: Iterable[InstalledRule]) -> None:
        """Rules that a switch held when it connected count as placed, until the engine says otherwise."""
        placed = self._placed[switch.plan.site]
        for rule in rules:
            known = placed.setdefault(rule.flow, Placed(rule.line, rule.role, at_s=0.0))
            if (known.line, known.role) == (rule.line, rule.role):
                known.sides.add(switch.plan.side)

    def settle(self, switch: Switch, now: float) -> int:
        """After a read-back: what is placed and was not told just now is told, and strays go.

        Flows that only this switch knew of get their rule for the other direction too.
        """
        switch.ready = True
        for here in self.at(switch.plan.site):
            for flow, placed in self._placed[switch.plan.site].items():
                stale = placed.at_s < now if here is switch else here.plan.side not in placed.sides
                if stale and here.ready and here.place(flow, placed.line, placed.role):
                    placed.sides.add(here.plan.side)
        return switch.delete_strays()

    def port_news(self, switch: Switch, news: PortNews) -> None:
        """A port's news; a line's port under another number takes its flows along."""
        if switch.port_changed(news.name, news.port):
            for flow, placed in self._placed[switch.plan.site].items():
                if (placed.line, news.name) in switch.plan.lines:
                    switch.place(flow, placed.line, placed.role)

    def of(self, channel: Channel) -> Switch | None:
        """The switch at the end of a connection."""
        return self._by_channel.get(id(channel))

    def at(self, site: str) -> Iterator[Switch]:
        """The switches of a site that are connected."""
        for side in SIDES:
            if switch := self._switches.get((site, side)):
                yield switch

    def all(self) -> Iterable[Switch]:
        """Every switch that is connected."""
        return self._switches.values()

    def flush(self, last: Side) -> None:
        """Sends what waits; `last` is the side whose packets must not overtake the other side's rules."""
        for side in (far(last), last):
            for site in self.sites:
                if switch := self._switches.get((site, side)):
                    switch.flush()

    # ------------------------------------------------------------ flows and hosts

    def placed(self, site: str, flow: FiveTuple) -> Placed | None:
        """A flow as the switches were last told."""
        return self._placed[site].get(flow)

    def place(self, effect: PlaceFlow, now: float) -> None:
        """One rule per direction, where each enters the lines."""
        placed = Placed(effect.line, effect.role, now)
        self._placed[effect.site][effect.flow] = placed
        for switch in self.at(effect.site):
            if switch.place(effect.flow, effect.line, effect.role):
                placed.sides.add(switch.plan.side)

    def forget(self, effect: ForgetFlow) -> None:
        """Both rules go."""
        self._placed[effect.site].pop(effect.flow, None)
        for switch in self.at(effect.site):
            switch.forget(effect.flow)

    def spread(self, effect: SetSpread) -> None:
        """Both switches' groups."""
        self._spread[effect.site] = effect
        for switch in self.at(effect.site):
            switch.set_spread(effect.weights, effect.discovery_line)

    def ended(self, switch: Switch, flow: FiveTuple) -> bool:
        """A switch's rule of a flow is gone. False when that was our own doing, or is out of date."""
        site, side = switch.plan.site, switch.plan.side
        placed = self._placed[site].get(flow)
        # What we deleted is not placed any more; what was steered since has no rule that expires.
        if placed is None or placed.role != "best-effort":
            return False
        placed.sides.discard(side)
        if not placed.sides:
            del self._placed[site][flow]
        return True

    def learn(self, switch: Switch, mac: bytes, port: int) -> None:
        """A host is behind an edge port of this switch, and of no other of its site."""
        if mac[0] & 1 or not switch.learn(mac, port):
            return
        if other := self._switches.get((switch.plan.site, far(switch.plan.side))):
            other.unlearn(mac)
