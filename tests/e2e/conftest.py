"""Runs that several tests ask, each made once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from short_runs import Run, perform

# A test of a browser that is not installed is left out, and the report's head says so.
NEEDS = {
    "test_chromium.py": ("/usr/bin/chromium", "/usr/bin/chromedriver"),
    "test_firefox.py": ("/usr/bin/firefox-esr",),
}
MISSING = {name: needs for name, needs in NEEDS.items() if not all(Path(need).exists() for need in needs)}
collect_ignore = list(MISSING)


def pytest_report_header() -> list[str]:
    """Names what is left out."""
    return [f"left out: tests/e2e/{name} needs {' and '.join(needs)}" for name, needs in MISSING.items()]


@pytest.fixture(scope="session")
def starved(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return perform(tmp_path_factory.mktemp("e2e") / "single", strategy="single")


@pytest.fixture(scope="session")
def rescued(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return perform(tmp_path_factory.mktemp("e2e") / "rescued", strategy="buffer-threshold")


@pytest.fixture(scope="session")
def behind_nat(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return perform(tmp_path_factory.mktemp("e2e") / "nat", strategy="buffer-threshold", nat=True)
