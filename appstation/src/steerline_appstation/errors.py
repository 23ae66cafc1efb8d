"""Errors of the station itself. Errors of the other side are in `steerline_contract.errors`."""

from __future__ import annotations


class StartError(Exception):
    """The station cannot start as it is told to: what is wrong, and what would be right."""


class StoreUnavailableError(Exception):
    """The store does not answer, or refuses. History waits; steering goes on."""
