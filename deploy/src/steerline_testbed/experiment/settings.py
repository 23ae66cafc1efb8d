"""What one run is asked to be. Born valid: a wrong value stops before anything is built."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from steerline_testbed.experiment.errors import ExperimentError
from steerline_testbed.network.topology import Topology

# A strategy that joins the controller's registry is accepted here without a change: the controller
# itself refuses a name that it does not know, before anything is measured.
STRATEGIES = ("single", "random", "round-robin", "buffer-threshold")
OVERRIDABLE = ("controller", "station", "agent")


class RunSettings(BaseModel):
    """Settings of one run. Times are seconds since the start of the player."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: str = Field(default="buffer-threshold", pattern=r"^[a-z][a-z0-9-]{0,40}$")
    player: Literal["headless", "chromium", "firefox"] = "headless"
    page: Literal["dashjs", "hlsjs", "shaka", "mp4", "webm"] = "dashjs"
    http: Literal["1.1", "2", "3"] = "1.1"
    tabs: bool = False
    show: bool = False
    screenshot_at_s: tuple[float, ...] = ()
    videos: int = Field(default=1, ge=0, le=50)
    flows: int = Field(default=20, ge=0, le=1000)
    duration_s: float = Field(default=420.0, ge=5.0, le=840.0)
    seed: int = Field(default=1, ge=0, le=2**31 - 1)
    traffic_start_s: float = Field(default=60.0, ge=0.0, le=840.0)
    traffic_interval_s: float = Field(default=1.0, ge=0.0, le=60.0)
    browsers: int = Field(default=1, ge=0, le=1)
    nat: bool = False
    best_effort: Literal["round-robin", "single"] = "round-robin"
    rule: Literal["on", "off", "default"] = "on"
    congestion_control: str = Field(default="cubic", pattern=r"^[a-z0-9_]{1,15}$")
    line_mbps: tuple[float, ...] = (10.0,) * 5
    mode: Literal["reactive", "reactive-with-fallback"] = "reactive"
    station_side: Literal["A", "B"] = "A"
    overrides: dict[str, Any] = Field(default_factory=dict[str, Any])

    @field_validator("line_mbps")
    @classmethod
    def _lines_in_range(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if not 1 <= len(value) <= 32 or not all(0.1 <= rate <= 1000 for rate in value):
            raise ValueError("1 to 32 lines of 0.1 to 1000 Mbps")
        return value

    @field_validator("screenshot_at_s")
    @classmethod
    def _screenshots_in_range(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if len(value) > 200 or not all(0 <= at_s <= 840 for at_s in value):
            raise ValueError("at most 200 times of 0 to 840 s")
        return value

    @field_validator("overrides")
    @classmethod
    def _overrides_name_a_part(cls, value: dict[str, Any]) -> dict[str, Any]:
        for key in value:
            part, _, name = key.partition(".")
            if part not in OVERRIDABLE or not name:
                raise ValueError(f"{key!r} does not name a setting: {', '.join(OVERRIDABLE)}, a dot, a key")
        return value

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> RunSettings:
        """Values from options or a campaign file. Raises ExperimentError naming value and allowed range."""
        try:
            settings = cls.model_validate(dict(values))
        except ValidationError as error:
            lines = [
                f"{'.'.join(str(part) for part in one['loc'])} is {one['input']!r}: {one['msg']}"
                for one in error.errors()
            ]
            raise ExperimentError("; ".join(lines)) from None
        if settings.flows and settings.traffic_start_s >= settings.duration_s:
            raise ExperimentError(
                f"traffic_start_s is {settings.traffic_start_s:g}; allowed: below the duration, "
                f"{settings.duration_s:g} s (or no flows)"
            )
        settings.require_player()
        return settings

    def require_player(self) -> None:
        """Raises ExperimentError for what the headless player does not have."""
        if self.player != "headless":
            return
        usual = RunSettings.model_construct()
        for name in ("page", "http", "tabs", "show", "screenshot_at_s"):
            if getattr(self, name) != getattr(usual, name):
                raise ExperimentError(
                    f"{name} is {getattr(self, name)!r}, which is a browser's; "
                    "allowed: that with player chromium or firefox"
                )
        if self.rule == "default":
            raise ExperimentError("rule is 'default', which is a page's; allowed: on, off")

    def topology(self) -> Topology:
        """The network that these settings want."""
        lines = [
            {"name": f"line{number}", "capacity_bps": round(mbps * 1e6)}
            for number, mbps in enumerate(self.line_mbps, start=1)
        ]
        values = {
            "line": lines,
            "viewers": max(1, self.videos),
            "nat": self.nat,
            "station_side": self.station_side,
            "congestion_control": self.congestion_control,
        }
        return Topology.parse(values, "topology of the run")

    @property
    def capacity_bps(self) -> dict[str, int]:
        """Capacity of each line by name."""
        return {f"line{i}": round(mbps * 1e6) for i, mbps in enumerate(self.line_mbps, start=1)}

    @property
    def viewers(self) -> list[str]:
        """The node of each customer who watches."""
        kind = "home" if self.nat else "viewer"
        return [f"{kind}{number}" for number in range(1, self.videos + 1)]

    @property
    def seats(self) -> list[str]:
        """The node of each video that is measured: with tabs each viewer watches two."""
        return [node for node in self.viewers for _ in range(2 if self.tabs else 1)]

    def overrides_of(self, part: str) -> dict[str, Any]:
        """The overrides of one part of the system, without its name."""
        prefix = part + "."
        return {
            key.removeprefix(prefix): value for key, value in self.overrides.items() if key.startswith(prefix)
        }


def parse_overrides(texts: Sequence[str]) -> dict[str, Any]:
    """`controller.damping_s=5` as a mapping; values are TOML, a bare word is a text."""
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ExperimentError(f"--set is {text!r}; allowed: part.key=value, as in controller.damping_s=5")
        try:
            found[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[key.strip()] = value.strip()
    return found
