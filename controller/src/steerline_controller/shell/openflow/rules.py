"""Flow rules and groups as data, in OpenFlow 1.3's words. What a switch is told, before it is bytes."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

# A match value as os-ken's OFPMatch takes it: an integer, an address as text, or (value, mask).
MatchValue = int | str | tuple[str, str]

CONTROLLER: Final = 0xFFFFFFFD  # OFPP_CONTROLLER
WHOLE_PACKET: Final = 0xFFFF  # OFPCML_NO_BUFFER: do not keep the packet, send all of it


@dataclass(frozen=True, slots=True)
class Output:
    """Send out of a port. `max_len`: bytes sent when the port is the controller."""

    port: int
    max_len: int = WHOLE_PACKET


@dataclass(frozen=True, slots=True)
class ToGroup:
    """Hand to a group."""

    group_id: int


Action = Output | ToGroup


@dataclass(frozen=True, slots=True)
class Rule:
    """OFPFlowMod's content, command ADD: it replaces a rule of the same table, priority and match.

    `actions` are applied at once, then `goto` (a later table) follows. `idle_timeout` in seconds
    (0: never). `notify_removed`: the switch tells when the rule expires.
    """

    table: int
    priority: int
    match: Mapping[str, MatchValue]
    cookie: int
    actions: tuple[Action, ...] = ()
    goto: int | None = None
    idle_timeout: int = 0
    notify_removed: bool = False


class GroupType(enum.IntEnum):
    """OFPGT_*."""

    ALL = 0
    SELECT = 1
    FAST_FAILOVER = 3


@dataclass(frozen=True, slots=True)
class Bucket:
    """One way out of a group. `watch` says that the bucket counts only while the port has carrier."""

    port: int
    weight: int = 0
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """OFPGroupMod's content."""

    group_id: int
    kind: GroupType
    buckets: tuple[Bucket, ...] = field(default=())
