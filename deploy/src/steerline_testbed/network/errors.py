"""What can go wrong with the emulated network, and whose fault it is."""

from __future__ import annotations

from typing import Any


class TestbedError(Exception):
    """Base of every error that the testbed reports without a trace: its text is for the user."""

    __test__ = False  # pytest: not a test class


class MissingRequirementError(TestbedError):
    """This machine lacks something: root, a tool or a kernel feature. Nothing has been made."""


class RunExistsError(TestbedError):
    """A living run already has this id."""


class BuildError(TestbedError):
    """A step of building the network failed: says which step, and what the tool answered."""


class LineDownError(TestbedError):
    """A leased line did not come up."""


class ServiceError(TestbedError):
    """A service of the run ended, or did not listen in time: carries the end of its log."""


class WrongNetworkError(TestbedError):
    """The network is not the one asked for: names each line, what was measured and what is allowed.

    `report` has everything that was measured, as in a run's summary.
    """

    def __init__(self, message: str, report: dict[str, Any]) -> None:
        super().__init__(message)
        self.report = report
