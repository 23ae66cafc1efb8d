"""Networks for tests, each under a run directory of its own."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from steerline_testbed.network import Network, Topology

_numbers = itertools.count(1)


@pytest.fixture
def run_id() -> str:
    """An id that no other run on this machine has."""
    return f"t{os.getpid()}-{next(_numbers)}"


@pytest.fixture(scope="module")
def base() -> Generator[Path]:
    """A directory for runs, short enough for sockets in it; empty again at the end."""
    path = Path(f"/run/steerline-test-{os.getpid()}-{next(_numbers)}")
    yield path
    if path.exists():
        left = [entry.name for entry in path.iterdir() if entry.name != ".lock"]
        shutil.rmtree(path)
        assert left == []


@pytest.fixture(scope="module")
def network(base: Path) -> Generator[Network]:
    """Two lines of 10 Mbit/s with switches, no controller; a module's tests share it and leave it whole."""
    run_id = f"t{os.getpid()}-{next(_numbers)}"
    with Network.create(Topology.default(lines=2), run_id, base) as built:
        built.start_switches()
        yield built
