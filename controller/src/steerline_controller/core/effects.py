"""What the core wants done. The shell does it, in this order, and reports what became of it as events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from steerline_contract.flows import FiveTuple
from steerline_contract.steering import Decision, NetworkAdvice
from steerline_controller.core.events import Role


@dataclass(frozen=True, slots=True)
class PlaceFlow:
    """Put a flow on a line: one rule per direction, each on the switch where it enters the lines.

    The same effect places a new flow and moves an old one (ADD with the same match and priority).
    Best-effort rules idle out; steered rules do not.
    """

    site: str
    flow: FiveTuple
    line: str
    role: Role


@dataclass(frozen=True, slots=True)
class ForgetFlow:
    """Delete a flow's rules on both switches."""

    site: str
    flow: FiveTuple


@dataclass(frozen=True, slots=True)
class SetSpread:
    """Weights of the lines in the switches' select group (0: leave the line out), and the line that
    carries ARP and neighbour discovery ("" when there is none). Both switches of the site."""

    site: str
    weights: Mapping[str, int]
    discovery_line: str


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell it to everybody who listens, and to the record."""

    message: Decision | NetworkAdvice


Effect = PlaceFlow | ForgetFlow | SetSpread | Announce
