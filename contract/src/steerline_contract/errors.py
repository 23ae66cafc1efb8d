"""Errors that say whose fault it is: these are always the other side's."""

from __future__ import annotations


class InvalidValueError(ValueError):
    """A value from outside that is wrong: which field, what it was, what is allowed."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        shown = repr(value)
        if len(shown) > 80:
            shown = shown[:77] + "..."
        super().__init__(f"{field} is {shown}; allowed: {allowed}")
        self.field = field
        self.allowed = allowed


class ForeignAddressError(InvalidValueError):
    """Somebody speaks for an address that is not its own."""
