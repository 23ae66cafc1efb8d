"""Runs that several tests ask, each made once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from short_runs import Run, perform


@pytest.fixture(scope="session")
def starved(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return perform(tmp_path_factory.mktemp("e2e") / "single", strategy="single")


@pytest.fixture(scope="session")
def rescued(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return perform(tmp_path_factory.mktemp("e2e") / "rescued", strategy="buffer-threshold")


@pytest.fixture(scope="session")
def behind_nat(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return perform(tmp_path_factory.mktemp("e2e") / "nat", strategy="buffer-threshold", nat=True)
