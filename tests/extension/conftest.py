"""A station, a host and a source of bytes for each test; nothing of them outlives it."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.agent.station import Station

from .browser import build_extension, make_film
from .host import AGENT, Host, Source

# A test of a browser that is not installed is left out, and the report's head says so.
NEEDS = {
    "test_chromium.py": ("/usr/bin/chromium", "/usr/bin/chromedriver"),
    "test_firefox.py": ("/usr/bin/firefox-esr",),
    "test_web.py": ("/usr/bin/chromium", "/usr/bin/chromedriver", "/usr/bin/firefox-esr"),
}
MISSING = {name: needs for name, needs in NEEDS.items() if not all(Path(need).exists() for need in needs)}
collect_ignore = list(MISSING)

Start = Callable[..., Awaitable[Host]]


def pytest_report_header() -> list[str]:
    """Names what is left out."""
    return [
        f"left out: tests/extension/{name} needs {' and '.join(needs)}" for name, needs in MISSING.items()
    ]


@pytest.fixture(scope="session", autouse=True)
def binary() -> None:
    """An agent that was built before it had a host would fail each test in its own way."""
    known = subprocess.run([str(AGENT), "host", "--help"], capture_output=True, check=False).returncode == 0
    assert known, f"{AGENT} knows no `host`: run `make agent`"


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minute of picture and sound, its index in front."""
    path = tmp_path_factory.mktemp("film") / "film.mp4"
    make_film(path, 60)
    return path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension for each browser, in a folder named after it; hosts of loopback are allowed."""
    return build_extension(tmp_path_factory.mktemp("extension"), "127.0.0.2", "127.0.0.3").parent


@pytest.fixture
async def station(tmp_path: Path) -> AsyncIterator[Station]:
    """A station with TLS."""
    server = Station(tmp_path)
    await server.start()
    yield server
    await server.die()


@pytest.fixture
async def source() -> AsyncIterator[Source]:
    """Where media comes from."""
    server = Source()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts hosts."""
    hosts: list[Host] = []

    async def one(*arguments: str) -> Host:
        hosts.append(await Host.start(*arguments))
        return hosts[-1]

    yield one
    for host in hosts:
        await host.die()
