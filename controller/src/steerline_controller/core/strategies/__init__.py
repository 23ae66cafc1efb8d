"""Every strategy by its name. Adding one adds one line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from steerline_contract.errors import InvalidValueError
from steerline_controller.core.config import StrategySettings
from steerline_controller.core.strategies.base import Strategy
from steerline_controller.core.strategies.buffer_threshold import BufferThreshold
from steerline_controller.core.strategies.random_line import RandomLine
from steerline_controller.core.strategies.round_robin import RoundRobin
from steerline_controller.core.strategies.single import Single

STRATEGIES: Final[dict[str, Callable[[StrategySettings], Strategy]]] = {
    "single": lambda _: Single(),
    "random": lambda settings: RandomLine(settings.seed),
    "round-robin": lambda _: RoundRobin(),
    "buffer-threshold": BufferThreshold,
}


def make(name: str, settings: StrategySettings) -> Strategy:
    """A strategy for one site. Raises InvalidValueError for a name that is not known."""
    try:
        build = STRATEGIES[name]
    except KeyError:
        raise InvalidValueError("strategy", name, ", ".join(STRATEGIES)) from None
    return build(settings)
