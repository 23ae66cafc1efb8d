"""The emulated access network as data: what a run is asked to build.

Read from TOML (`Topology.load`) or made from defaults (`Topology.default`). Unknown keys and values out of
range are refused; the message names the key, the value and the allowed range.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from steerline_testbed.network.errors import TestbedError

FRAME_BYTES = 1514
"""Largest Ethernet frame as the kernel counts it: 1500 bytes of payload, 14 of header, no checksum."""

_LINE_NAME = re.compile(r"[a-z][a-z0-9]{0,12}")
_RESERVED = re.compile(r"(viewer\d*|home\d*|downloader|browser|station|video|download|core)")

Probability = Annotated[float, Field(ge=0, le=0.5)]


class LineSpec(BaseModel):
    """One leased line between the access switch A and the provider's switch B; both directions alike."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    capacity_bps: int = Field(default=10_000_000, ge=100_000, le=1_000_000_000)
    """Rate of each direction in bit/s, counted in layer-2 bytes (without preamble, gap and checksum)."""
    delay_ms: float = Field(default=0, ge=0, le=2000)
    """Delay one way, added to what the emulation itself takes; wants netem in the kernel."""
    jitter_ms: float = Field(default=0, ge=0, le=1000)
    """Standard deviation of the delay; wants netem."""
    loss: Probability = 0
    """Share of packets lost at random in each direction, before the queue."""
    queue_packets: int = Field(default=100, ge=2, le=10_000)
    """Room of each direction's drop-tail queue, in full frames of 1514 bytes."""

    @field_validator("name")
    @classmethod
    def _name_fits_a_port(cls, name: str) -> str:
        if not _LINE_NAME.fullmatch(name):
            raise ValueError("a lower-case letter, then letters and digits, at most 13 in all")
        if _RESERVED.fullmatch(name):
            raise ValueError("must not be the name of a host")
        return name

    @model_validator(mode="after")
    def _jitter_needs_delay(self) -> Self:
        if self.jitter_ms > self.delay_ms:
            raise ValueError(f"jitter_ms {self.jitter_ms:g} must not exceed delay_ms {self.delay_ms:g}")
        return self

    @property
    def queue_bytes(self) -> int:
        """Room of the queue in bytes."""
        return self.queue_packets * FRAME_BYTES


class Topology(BaseModel):
    """The whole network: lines, who lives on either side, and how TCP behaves."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    lines: tuple[LineSpec, ...] = Field(alias="line", min_length=1, max_length=32)
    viewers: int = Field(default=1, ge=1, le=64)
    """Customers who watch; with `nat` they live in the household, else each has an edge port."""
    nat: bool = False
    """The viewers are behind the household's home router, which rewrites address and port."""
    station_side: Literal["A", "B"] = "A"
    """The switch on whose edge port the application station sits."""
    congestion_control: str = Field(default="cubic", pattern=r"^[a-z0-9_]{1,15}$")
    """TCP's congestion control on every host, set per route."""
    ipv6: bool = True
    """Give every host an IPv6 address too (the household's inside has IPv4 only)."""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [line.name for line in self.lines]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"line names must differ: {', '.join(twice)}")
        return self

    @property
    def capacity_bps(self) -> int:
        """All lines together, one direction."""
        return sum(line.capacity_bps for line in self.lines)

    @property
    def wants_netem(self) -> bool:
        """Whether any line asks for what only netem can do."""
        return any(line.delay_ms for line in self.lines)

    def line(self, name: str) -> LineSpec:
        """The line of that name; TestbedError names the lines there are."""
        for line in self.lines:
            if line.name == name:
                return line
        known = ", ".join(line.name for line in self.lines)
        raise TestbedError(f"no line is called {name!r}; allowed: {known}")

    @classmethod
    def default(
        cls,
        lines: int = 5,
        line_bps: int = 10_000_000,
        viewers: int = 1,
        *,
        delay_ms: float = 0,
        loss: float = 0,
        queue_packets: int = 100,
        nat: bool = False,
        station_side: str = "A",
        congestion_control: str = "cubic",
        ipv6: bool = True,
    ) -> Topology:
        """`lines` equal lines named line1, line2 ...; TestbedError names a value out of range."""
        if not 1 <= lines <= 32:
            raise TestbedError(f"lines is {lines}; allowed: 1 to 32")
        line: dict[str, Any] = {
            "capacity_bps": line_bps,
            "delay_ms": delay_ms,
            "loss": loss,
            "queue_packets": queue_packets,
        }
        return cls.parse(
            {
                "line": [{"name": f"line{number}", **line} for number in range(1, lines + 1)],
                "viewers": viewers,
                "nat": nat,
                "station_side": station_side,
                "congestion_control": congestion_control,
                "ipv6": ipv6,
            },
            "topology",
        )

    @classmethod
    def parse(cls, values: dict[str, Any], where: str) -> Topology:
        """Values as TOML gives them; TestbedError says where, which key, its value and the allowed range."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise TestbedError("\n".join(_explain(where, problem) for problem in error.errors())) from None

    @classmethod
    def load(cls, path: Path) -> Topology:
        """A topology file; TestbedError when it cannot be read or is wrong."""
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise TestbedError(f"topology {path} cannot be read: {error}") from None
        return cls.parse(values, f"topology {path}")


def _explain(where: str, problem: Any) -> str:
    key = ".".join(str(part) for part in problem["loc"]) or "the whole"
    shown = repr(problem["input"])
    if len(shown) > 60:
        shown = shown[:57] + "..."
    reason = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {key} is {shown}; allowed: {reason}"
