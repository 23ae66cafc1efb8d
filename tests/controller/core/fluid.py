"""A small fluid network for tests of the core: equal TCP shares, players with a buffer, no packets.

Every 0.2 s the lines are shared among the flows on them (max-min fair, players want no more than
their goal lets them), buffers change, and the engine hears what the shell would tell it.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from steerline_contract.flows import TCP, FiveTuple, Link
from steerline_contract.playback import PlayerState
from steerline_contract.steering import Assessment, Decision, DecisionKind
from steerline_controller.core import events as ev
from steerline_controller.core.config import SiteConfig, StrategySettings
from steerline_controller.core.effects import Announce, ForgetFlow, PlaceFlow
from steerline_controller.core.engine import Engine

STEP_S = 0.2
TOP_BPS = 2_728_000 * 1.05


def address(text: str) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(text)


def flow(host: int, port: int, server: str = "198.19.0.1") -> FiveTuple:
    return FiveTuple(TCP, address(f"198.18.1.{host}"), port, address(server), 80)


@dataclass
class Player:
    session_id: str
    flow: FiveTuple
    goal_s: float = 55.0
    buffer_s: float = 0.0
    playing: bool = False
    critical: bool = False
    stalls: int = 0
    bytes: float = 0.0
    history: list[tuple[float, float]] = field(default_factory=list)

    def wants(self) -> float:
        return float("inf") if self.buffer_s < self.goal_s - 1 else TOP_BPS

    def advance(self, rate_bps: float, dt: float, now: float) -> None:
        self.buffer_s += rate_bps / TOP_BPS * dt
        if self.playing:
            self.buffer_s -= dt
            if self.buffer_s <= 0:
                self.buffer_s, self.playing = 0.0, False
                self.stalls += 1
        elif self.buffer_s >= 2.5:
            self.playing = True
        self.history.append((now, self.buffer_s))

    def assess(self) -> Assessment:
        if self.buffer_s >= 35:
            self.critical = False
        elif self.buffer_s < 20 and (self.playing or self.stalls):
            self.critical = True
        refill = max(0.0, 35 - self.buffer_s) / 20
        return Assessment(
            session_id=self.session_id,
            player_state=PlayerState.PLAYING
            if self.playing
            else PlayerState.REBUFFERING
            if self.stalls
            else PlayerState.STARTING,
            buffer_length_ms=int(self.buffer_s * 1000),
            critical=self.critical,
            need_bps=int(TOP_BPS * (1 + refill)),
            play_bps=int(TOP_BPS),
            low_ms=20_000,
            high_ms=35_000,
            time_to_live_ms=5_000,
            flows=(self.flow,),
        )


class Fluid:
    """Engine, lines and flows together."""

    def __init__(
        self,
        strategy: str,
        lines: int = 5,
        line_bps: int = 10_000_000,
        settings: StrategySettings | None = None,
        capacities: tuple[int, ...] = (),
    ) -> None:
        sizes = capacities or (line_bps,) * lines
        self.lines = {f"line{i + 1}": size for i, size in enumerate(sizes)}
        site = SiteConfig("home", tuple(Link(name, size) for name, size in self.lines.items()))
        self.engine = Engine([site], strategy, settings or StrategySettings())
        self.now = 0.0
        self.where: dict[FiveTuple, str] = {}
        self.down: dict[FiveTuple, float] = {}
        self.line_bytes = dict.fromkeys(self.lines, 0.0)
        self.players: dict[FiveTuple, Player] = {}
        self.decisions: list[Decision] = []
        self.dead: set[str] = set()
        self.used_bps: list[tuple[float, float]] = []
        up = dict.fromkeys(self.lines, True)
        for side in ("A", "B"):
            self.tell(ev.SwitchConnected("home", side, up))
        self._read_at = 0.0
        self._reported_at = 0.0

    def tell(self, event: ev.Event) -> None:
        for effect in self.engine.handle(event, self.now):
            if isinstance(effect, PlaceFlow):
                self.where[effect.flow] = effect.line
            elif isinstance(effect, ForgetFlow):
                self.where.pop(effect.flow, None)
            elif isinstance(effect, Announce) and isinstance(effect.message, Decision):
                self.decisions.append(effect.message)

    def start(self, new: FiveTuple, player: Player | None = None) -> None:
        self.down[new] = 0.0
        if player is not None:
            self.players[new] = player
        self.tell(ev.FlowArrived("home", "A", new))

    def stop(self, old: FiveTuple) -> None:
        del self.down[old]
        for side in ("A", "B"):
            self.tell(ev.FlowEnded("home", side, old))

    def run(self, until: float) -> None:
        while self.now < until:
            self.now = round(self.now + STEP_S, 6)
            self._carry()
            for name in set(self.lines) - self.dead:
                for side in ("A", "B"):
                    self.tell(ev.ProbeArrived("home", side, name))
            if self.now - self._read_at >= 1.0 - 1e-9:
                self._read_at = self.now
                self._read()
            if self.now - self._reported_at >= 1.0 - 1e-9:
                self._reported_at = self.now
                for player in self.players.values():
                    self.tell(ev.Assessed(player.assess()))
            self.tell(ev.Tick())

    def _carry(self) -> None:
        rates: dict[FiveTuple, float] = dict.fromkeys(self.down, 0.0)
        for name, capacity in self.lines.items():
            here = [f for f in self.down if self.where.get(f) == name]
            if name in self.dead:
                continue
            left = capacity * 0.985
            wants = {f: self.players[f].wants() if f in self.players else float("inf") for f in here}
            for f in sorted(here, key=lambda f: wants[f]):
                rates[f] = min(wants[f], left / (len(here)))
                left -= rates[f]
                here = here[1:]
        for f, rate in rates.items():
            amount = rate * STEP_S / 8
            self.down[f] += amount
            if f in self.where:
                self.line_bytes[self.where[f]] += amount
        for f, player in self.players.items():
            player.advance(rates[f], STEP_S, self.now)
        self.used_bps.append((self.now, sum(rates.values())))
        self.rates = rates

    def _read(self) -> None:
        flows = {f: int(total) for f, total in self.down.items()}
        lines = {name: (int(total), 0) for name, total in self.line_bytes.items()}
        self.tell(ev.CountersRead("home", "B", flows, dict.fromkeys(self.lines, (0, 0))))
        self.tell(ev.CountersRead("home", "A", {f: t // 40 for f, t in flows.items()}, lines))

    def rho(self, since: float) -> float:
        values = [used for t, used in self.used_bps if t > since]
        return sum(values) / len(values) / sum(self.lines.values())

    def moves(self) -> list[Decision]:
        return [d for d in self.decisions if d.kind is DecisionKind.STEER and d.from_line and d.flow]
