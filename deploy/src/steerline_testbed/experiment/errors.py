"""Errors of an experiment: each names the thing, and says what is allowed or what to do."""

from __future__ import annotations

from steerline_testbed.network.errors import TestbedError


class ExperimentError(TestbedError):
    """The experiment cannot start or go on. The message is for the person at the terminal."""


class ToolMissingError(ExperimentError):
    """A program that the experiment needs is not installed."""

    def __init__(self, tool: str, how: str) -> None:
        super().__init__(f"{tool} is missing: {how}")
        self.tool = tool


class MediaError(ExperimentError):
    """The video could not be made, or is not what it should be."""


class ProcessDiedError(ExperimentError):
    """A process of the run ended while it was needed."""

    def __init__(self, name: str, code: int | None, tail: str) -> None:
        shown = f"; its last words:\n{tail}" if tail else "; it said nothing"
        super().__init__(f"{name} ended in the middle of the run (exit status {code}){shown}")
        self.name = name
