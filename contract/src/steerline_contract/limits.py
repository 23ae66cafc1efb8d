"""How large things may be. Units stand in the names."""

from __future__ import annotations

from typing import Final

MAX_FLOWS: Final = 32
MAX_SESSION_ID_LENGTH: Final = 64
MAX_NAME_LENGTH: Final = 64
MAX_REASON_LENGTH: Final = 1024
DAY_MS: Final = 86_400_000
YEAR_2100_MS: Final = 4_102_444_800_000
MAX_KBPS: Final = 10_000_000
MAX_BPS: Final = 10**12
MAX_PLAYBACK_RATE: Final = 16.0
