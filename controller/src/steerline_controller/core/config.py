"""What the core must know before the first event. Ranges are checked where settings enter (shell)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from steerline_contract.errors import InvalidValueError
from steerline_contract.flows import Link

BestEffort = Literal["round-robin", "single"]


@dataclass(frozen=True, slots=True)
class SiteConfig:
    """A site: two switches and the leased lines between them, in the operator's order."""

    name: str
    lines: tuple[Link, ...]

    def __post_init__(self) -> None:
        if not self.lines:
            raise InvalidValueError(f"lines of site {self.name}", 0, "1 or more")
        names = [line.name for line in self.lines]
        if len(set(names)) != len(names):
            raise InvalidValueError(f"lines of site {self.name}", names, "names that differ")


@dataclass(frozen=True, slots=True)
class StrategySettings:
    """What strategies can be told. Units: seconds.

    `damping_s`: a best-effort flow is moved at most once in this time.
    `best_effort`: where the rest goes under buffer-threshold.
    `seed`: of the strategy `random`.
    """

    damping_s: float = 10.0
    best_effort: BestEffort = "round-robin"
    seed: int = 1


@dataclass(frozen=True, slots=True)
class LivenessSettings:
    """When a line counts as dead although its ports have carrier, and as alive again.

    Probes come out of a line every 0.4 s. `silent_after_s` without a probe and without bytes at the
    far end is silence; `alive_after_probes` probes in a row end it.
    """

    silent_after_s: float = 1.6
    alive_after_probes: int = 4
    grace_s: float = 3.0
    stall_s: float = 0.8


# A line carries less than its rate in useful shares: acknowledgements, probes, short flows.
USABLE: Final = 0.95
# Steered rules have no idle time-out; one without a byte for this long is forgotten.
QUIET_S: Final = 60.0
# Steered rules that a restarted controller finds wait this long for their session to speak.
ADOPTED_S: Final = 10.0
