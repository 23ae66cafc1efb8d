"""A station, a host and a source of bytes for each test; nothing of them outlives it."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.agent.station import Station

from .host import AGENT, Host, Source

CHROMIUM = Path("/usr/bin/chromium")
DRIVER = Path("/usr/bin/chromedriver")
HAS_CHROMIUM = CHROMIUM.exists() and DRIVER.exists()
collect_ignore = [] if HAS_CHROMIUM else ["test_chromium.py"]

Start = Callable[..., Awaitable[Host]]


def pytest_report_header() -> list[str]:
    """Says what is left out, where the browser is not installed."""
    missing = f"tests/extension/test_chromium.py is left out: {CHROMIUM} and {DRIVER} are needed"
    return [] if HAS_CHROMIUM else [missing]


@pytest.fixture(scope="session", autouse=True)
def binary() -> None:
    """An agent that was built before it had a host would fail each test in its own way."""
    known = subprocess.run([str(AGENT), "host", "--help"], capture_output=True, check=False).returncode == 0
    assert known, f"{AGENT} knows no `host`: run `make agent`"


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
