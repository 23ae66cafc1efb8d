"""A film server, a station and agents for each test; nothing of them outlives it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from . import agent
from .agent import Agent
from .station import Station
from .web import Film, Web

Start = Callable[..., Awaitable[Agent]]


@pytest.fixture(scope="session", autouse=True)
def binary() -> Path:
    """The agent as it is released."""
    return agent.build()


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    """A film of a minute."""
    server = Web(Film())
    await server.start()
    yield server
    await server.die()


@pytest.fixture
async def station(tmp_path: Path) -> AsyncIterator[Station]:
    """A station with TLS."""
    server = Station(tmp_path)
    await server.start()
    yield server
    await server.die()


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts agents with a record in the test's own directory."""
    agents: list[Agent] = []

    async def one(*arguments: str) -> Agent:
        record = tmp_path / f"record-{len(agents)}.jsonl"
        agents.append(await agent.start(record, *arguments))
        return agents[-1]

    yield one
    for each in agents:
        each.kill()
        await each.process.wait()
