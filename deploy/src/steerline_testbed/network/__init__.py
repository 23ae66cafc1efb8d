"""The emulated access network: build it, look at it, cut its lines, remove it."""

from steerline_testbed.network.counters import LineCounters
from steerline_testbed.network.errors import (
    BuildError,
    LineDownError,
    MissingRequirementError,
    RunExistsError,
    ServiceError,
    TestbedError,
    WrongNetworkError,
)
from steerline_testbed.network.network import Network
from steerline_testbed.network.plan import Line, Node
from steerline_testbed.network.process import Process
from steerline_testbed.network.topology import LineSpec, Topology
from steerline_testbed.network.verdict import CheckReport

__all__ = [
    "BuildError",
    "CheckReport",
    "Line",
    "LineCounters",
    "LineDownError",
    "LineSpec",
    "MissingRequirementError",
    "Network",
    "Node",
    "Process",
    "RunExistsError",
    "ServiceError",
    "TestbedError",
    "Topology",
    "WrongNetworkError",
]
