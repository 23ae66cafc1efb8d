"""A short run of the whole system on a real network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steerline_testbed.experiment.progress import Silent
from steerline_testbed.experiment.run import Order, execute
from steerline_testbed.experiment.settings import RunSettings

# Twelve downloads on one 10 Mbit/s line leave a 2.7 Mbit/s video 0.77; a buffer of 14 s lasts about 20 s.
SHORT = {
    "flows": 12,
    "duration_s": 48.0,
    "traffic_start_s": 8.0,
    "traffic_interval_s": 0.2,
    "rule": "off",
    "overrides": {"agent.goal": 14},
}


@dataclass(frozen=True)
class Run:
    summary: Mapping[str, Any]
    folder: Path

    @property
    def video(self) -> Mapping[str, Any]:
        return self.summary["videos"][0]


def perform(folder: Path, **settings: object) -> Run:
    order = Order(RunSettings.parse({**SHORT, **settings}), folder)
    return Run(execute(order, Silent()), folder)
