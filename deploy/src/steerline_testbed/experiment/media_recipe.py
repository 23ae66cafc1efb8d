"""What the video of an experiment is: sizes, rates, lengths; and the key of its cache."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import asdict, dataclass

# Raise it when the way of encoding changes: an old cache is then not used.
RECIPE_VERSION = 3

FRAMES_PER_SECOND = 25
SEGMENT_S = 2


@dataclass(frozen=True, slots=True)
class VideoRate:
    """One quality: height in lines, mean rate and standard deviation of the 2-s segments' rates."""

    width: int
    height: int
    mean_bps: int
    deviation_bps: int
    noise: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """The source's video: 480p at 2.6 Mbps (sd 250 kbps), 360p at 0.75 Mbps, AAC at 128 kbps.

    `loop_s` seconds are encoded and repeated up to `duration_s`; both are whole 2-s segments.
    """

    rates: tuple[VideoRate, ...] = (
        VideoRate(854, 480, 2_600_000, 250_000, 18),
        VideoRate(640, 360, 750_000, 72_000, 10),
    )
    audio_bps: int = 128_000
    loop_s: int = 64
    duration_s: int = 900
    seed: int = 1
    version: int = RECIPE_VERSION

    def __post_init__(self) -> None:
        for name in ("loop_s", "duration_s"):
            value = getattr(self, name)
            if value < SEGMENT_S or value % SEGMENT_S:
                raise ValueError(f"{name} is {value}; allowed: a positive multiple of {SEGMENT_S} s")
        if not self.rates:
            raise ValueError("rates is empty; allowed: at least one quality")

    @property
    def key(self) -> str:
        """Names the cache folder: another recipe, another folder."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def segment_targets_bps(self, rate: VideoRate) -> list[float]:
        """The rate each segment of the loop shall have: normal, with exactly the asked mean and deviation."""
        chance = random.Random(self.seed)
        count = self.loop_s // SEGMENT_S
        if count < 2:
            return [float(rate.mean_bps)] * count
        drawn = [chance.gauss(0.0, 1.0) for _ in range(count)]
        mean = sum(drawn) / count
        deviation = (sum((value - mean) ** 2 for value in drawn) / count) ** 0.5
        return [rate.mean_bps + rate.deviation_bps * (value - mean) / deviation for value in drawn]
