"""Cookies say whose rule it is, its role, its line and the connection that wrote it.

    63      48 47    40 39        24 23           0
    |  magic  |  kind  | line index | generation  |

The generation is drawn anew for each connection. Rules that still carry another one after a switch
was read back and told everything again are strays, and are deleted by cookie: nothing has a gap.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

MAGIC: Final = 0x57EE
_MAGIC_SHIFT: Final = 48
_KIND_SHIFT: Final = 40
_LINE_SHIFT: Final = 24
GENERATIONS: Final = 1 << 24

OURS_MASK: Final = 0xFFFF << _MAGIC_SHIFT
OURS: Final = MAGIC << _MAGIC_SHIFT
_PER_FLOW_BIT: Final = 0x80
# Matches the cookies of per-flow rules only.
PER_FLOW_MASK: Final = OURS_MASK | (_PER_FLOW_BIT << _KIND_SHIFT)
PER_FLOW: Final = OURS | (_PER_FLOW_BIT << _KIND_SHIFT)
EXACT_MASK: Final = (1 << 64) - 1


class Kind(enum.IntEnum):
    """The role of a rule."""

    PIPELINE = 0x01
    LEARNT = 0x02
    BEST_EFFORT = 0x80
    STEERED = 0x81


@dataclass(frozen=True, slots=True)
class Cookie:
    """A cookie, taken apart."""

    kind: Kind
    line_index: int
    generation: int


def pack(kind: Kind, generation: int, line_index: int = 0) -> int:
    """The cookie of a rule of ours."""
    return OURS | (kind << _KIND_SHIFT) | (line_index << _LINE_SHIFT) | generation


def unpack(cookie: int) -> Cookie | None:
    """Takes a cookie apart; None when the rule is not ours, or of a kind we do not know."""
    if cookie & OURS_MASK != OURS:
        return None
    try:
        kind = Kind((cookie >> _KIND_SHIFT) & 0xFF)
    except ValueError:
        return None
    return Cookie(kind, (cookie >> _LINE_SHIFT) & 0xFFFF, cookie & (GENERATIONS - 1))
