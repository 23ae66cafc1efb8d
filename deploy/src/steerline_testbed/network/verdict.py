"""What was measured of a network, held against what was asked for. Pure: no clock, no socket.

Allowed, per line and direction: rate within 2 % of the line's, by layer-2 bytes; losses as configured (none,
or within five standard deviations of a binomial draw); median round-trip time of the idle line below 2 ms
beyond the delay asked for. In all: no packet passes without rules, the switches lose at most one packet in a
thousand that they should have carried, and every host's TCP runs the congestion control of the topology.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from steerline_testbed.network.errors import WrongNetworkError
from steerline_testbed.network.topology import LineSpec, Topology

RATE_TOLERANCE = 0.02
EXTRA_RTT_MS = 2.0
SWITCH_LOSS_ALLOWED = 0.001
_SIGMAS = 5


@dataclass(frozen=True)
class RateMeasurement:
    """One line, one direction, under a load above its rate.

    `rate_bps`: layer-2 bits per second that came out at the far end; `offered_bps`: that went in. Packets
    over the whole of the load: `entered` the line, `dropped` by its queue, `left` at the far end.
    """

    rate_bps: float
    offered_bps: float
    entered: int
    dropped: int
    left: int

    @property
    def lost(self) -> int:
        """Packets that neither the queue dropped nor the far end saw."""
        return self.entered - self.dropped - self.left


@dataclass(frozen=True)
class SwitchAccount:
    """What the switches carried of one direction's load, in packets.

    `sent` by the host, `entered` all lines; `left` all lines, `delivered` to the host at the other end.
    """

    sent: int
    entered: int
    left: int
    delivered: int

    @property
    def loss(self) -> float:
        """Share of packets that the two switches lost between ports."""
        carried = self.sent + self.left
        return (carried - self.entered - self.delivered) / carried if carried else 0.0


@dataclass(frozen=True)
class Measurements:
    """Everything that a check saw."""

    rates: Mapping[str, Mapping[str, RateMeasurement]]
    """By line, then direction ("down", "up")."""
    rtt_ms: Mapping[str, float | None]
    """Median by line; None when nothing came back."""
    switches: Mapping[str, SwitchAccount]
    """By direction."""
    leaks: tuple[str, ...]
    """Ports out of which packets came although no rule was there."""
    strangers: tuple[str, ...]
    """Devices that do not belong, as namespace/device."""
    congestion_control: Mapping[str, tuple[str, ...]]
    """What ss showed, by host."""


@dataclass(frozen=True)
class CheckReport:
    """A check's outcome, ready for a run's summary."""

    topology: Topology
    measured: Measurements
    duration_s: float
    attempts: int
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the network is the one asked for."""
        return not self.problems

    def require(self) -> None:
        """WrongNetworkError naming every problem, unless it passed."""
        if self.problems:
            raise WrongNetworkError(
                "this is not the network that was asked for, nothing will be measured on it:\n  "
                + "\n  ".join(self.problems),
                self.as_dict(),
            )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; rates in bit/s, times in the unit of the name."""
        return {
            "passed": self.passed,
            "problems": list(self.problems),
            "duration_s": round(self.duration_s, 3),
            "attempts": self.attempts,
            "lines": {spec.name: self._line(spec) for spec in self.topology.lines},
            "switches": {
                direction: {**asdict(account), "loss": round(account.loss, 6)}
                for direction, account in self.measured.switches.items()
            },
            "closed_paths": not self.measured.leaks and not self.measured.strangers,
            "congestion_control": {
                host: list(names) for host, names in self.measured.congestion_control.items()
            },
        }

    def _line(self, spec: LineSpec) -> dict[str, Any]:
        rtt_ms = self.measured.rtt_ms[spec.name]
        shown: dict[str, Any] = {
            "capacity_bps": spec.capacity_bps,
            "rtt_ms": None if rtt_ms is None else round(rtt_ms, 3),
            "rtt_allowed_ms": list(rtt_allowed_ms(spec)),
            "queue_packets": spec.queue_packets,
        }
        for direction, rate in self.measured.rates[spec.name].items():
            shown[f"{direction}_bps"] = round(rate.rate_bps)
            shown[f"{direction}_offered_bps"] = round(rate.offered_bps)
            shown[f"{direction}_entered"] = rate.entered
            shown[f"{direction}_dropped"] = rate.dropped
            shown[f"{direction}_lost"] = rate.lost
        return shown


def rtt_allowed_ms(spec: LineSpec) -> tuple[float, float]:
    """Least and greatest median round-trip time of the idle line."""
    asked_ms = 2 * spec.delay_ms
    return max(0.0, 0.95 * asked_ms - 2 * spec.jitter_ms), asked_ms + 2 * spec.jitter_ms + EXTRA_RTT_MS


def loss_allowed(spec: LineSpec, packets: int) -> tuple[float, float]:
    """Least and greatest share of packets that may be lost at random on a line that lost `spec.loss`."""
    if spec.loss == 0 or packets == 0:
        return 0.0, 0.0
    spread = _SIGMAS * math.sqrt(spec.loss * (1 - spec.loss) / packets)
    return max(0.0, spec.loss - spread), spec.loss + spread


def problems(topology: Topology, measured: Measurements) -> tuple[str, ...]:
    """Every way in which the network is not the one asked for; empty when it is."""
    return tuple(_problems(topology, measured))


def _problems(topology: Topology, measured: Measurements) -> Iterator[str]:
    for port in measured.leaks:
        yield f"closed paths: packets came out of {port} although no rule lets any pass (allowed: 0)"
    for stranger in measured.strangers:
        yield f"closed paths: {stranger} is a device that the testbed did not make (allowed: none)"
    for spec in topology.lines:
        yield from _rtt_problems(spec, measured.rtt_ms[spec.name])
        for direction, rate in measured.rates[spec.name].items():
            yield from _rate_problems(spec, direction, rate)
    for direction, account in measured.switches.items():
        if account.loss > SWITCH_LOSS_ALLOWED:
            yield (
                f"switches, {direction}: lost {account.loss:.2%} of {account.sent + account.left} packets "
                f"between their ports (allowed: {SWITCH_LOSS_ALLOWED:.1%}); "
                "this machine is too busy for this network"
            )
    for host, seen in measured.congestion_control.items():
        if set(seen) != {topology.congestion_control}:
            yield (
                f"{host}: TCP runs {', '.join(seen) or 'nothing that ss shows'} "
                f"(allowed: {topology.congestion_control})"
            )


def _rtt_problems(spec: LineSpec, rtt_ms: float | None) -> Iterator[str]:
    least_ms, most_ms = rtt_allowed_ms(spec)
    if rtt_ms is None:
        yield f"{spec.name}: nothing comes back over it (allowed: a round trip in {most_ms:g} ms)"
    elif not least_ms <= rtt_ms < most_ms:
        yield f"{spec.name}: median round trip {rtt_ms:.2f} ms (allowed: {least_ms:g} to {most_ms:g} ms)"


def _rate_problems(spec: LineSpec, direction: str, rate: RateMeasurement) -> Iterator[str]:
    low, high = (spec.capacity_bps * (1 + sign * RATE_TOLERANCE) for sign in (-1, 1))
    if not low <= rate.rate_bps <= high:
        yield (
            f"{spec.name} {direction}: {rate.rate_bps / 1e6:.3f} Mbit/s came out "
            f"of {rate.offered_bps / 1e6:.3f} offered (allowed: {low / 1e6:.3f} to {high / 1e6:.3f})"
        )
    survived = rate.entered - rate.dropped
    least, most = loss_allowed(spec, rate.entered)
    share = rate.lost / rate.entered if rate.entered else 0.0
    if survived and not least <= share <= most:
        yield (
            f"{spec.name} {direction}: {rate.lost} of {rate.entered} packets lost on the way "
            f"(allowed: {math.floor(least * rate.entered)} to {math.ceil(most * rate.entered)})"
        )
