"""One small film, one web server and one Chromium for all tests of the pages."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from selenium import webdriver

from steerline_testbed.experiment import media

from .site import SMALL, Site, all_films, plain_chromium, serving

CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromedriver")
# A test of a browser that is not installed is left out, and the report's head says so.
NEEDS = {
    "test_pages.py": CHROMIUM,
    "test_protocols.py": CHROMIUM,
    "test_stalls.py": CHROMIUM,
    "test_endings.py": CHROMIUM,
}
MISSING = {name: needs for name, needs in NEEDS.items() if not all(Path(need).exists() for need in needs)}
collect_ignore = list(MISSING)


def pytest_report_header() -> list[str]:
    """Names what is left out."""
    return [
        f"left out: tests/testbed/browser/{name} needs {' and '.join(needs)}"
        for name, needs in MISSING.items()
    ]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where films are made."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def dash(cache: Path) -> Path:
    """The DASH folder."""
    return media.ensure(SMALL, cache)


@pytest.fixture(scope="session")
def films(dash: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its further forms."""
    return all_films(dash, cache, tmp_path_factory.mktemp("films") / "all")


@pytest.fixture(scope="session")
def site(dash: Path, films: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    """The web server."""
    with serving(tmp_path_factory.mktemp("run"), dash, films) as running:
        yield running


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Generator[webdriver.Chrome]:
    """The browser."""
    with plain_chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver
