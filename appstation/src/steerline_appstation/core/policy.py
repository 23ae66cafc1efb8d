"""The numbers the core decides by."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Final

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

# Bounds never exceed these shares of the buffer that a player aims at.
LOW_SHARE_OF_TARGET: Final = 0.4
HIGH_SHARE_OF_TARGET: Final = 0.7

# What TCP, IP, Ethernet and HTTP add to the media's own bytes.
OVERHEAD: Final = 1.05

# The top rate of a player that has told none yet, kbit/s.
DEFAULT_TOP_KBPS: Final = 2500


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds in media seconds, times in seconds. Ranges are checked by the settings."""

    low_s: float = 20.0
    high_s: float = 35.0
    refill_s: float = 20.0
    report_timeout_s: float = 5.0
    # A private address inside one of these is a customer's; outside of all it is a household's own.
    customer_networks: tuple[IPNetwork, ...] = field(default=())
    max_sessions_per_address: int = 256
    max_sessions: int = 20_000
    max_reports_per_s_per_address: int = 1000
