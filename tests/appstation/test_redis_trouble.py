"""Redis killed, stopped, out of memory, out of disk: history suffers, steering does not."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .support import Agent, Controller, RunningStation, eventually, report


async def history(station: RunningStation) -> dict[str, Any]:
    return (await station.get("/health"))[1]["history"]["redis"]


async def series(station: RunningStation, session_id: str = "s1") -> list[int]:
    _, answer = await station.get(f"/sessions/{session_id}?limit=1000")
    return [s["sequence_number"] for s in answer.get("series", [])]


async def steer(agent: Agent, controller: Controller, numbers: range) -> None:
    """Reports, each of which must reach the controller at once."""
    for number in numbers:
        await agent.send(report(sequence_number=number))
        assert (await controller.next(within_s=1.0)).session_id == "s1"


async def test_redis_killed_and_restarted(station: RunningStation, controller: Controller) -> None:
    """The child is started again with what it held, and the queue catches up: nothing is lost."""
    async with station.agent() as agent:
        await steer(agent, controller, range(1, 20))

        async def stored() -> bool:
            return len(await series(station)) == 19

        await eventually(stored)
        await asyncio.sleep(1.2)  # appendfsync everysec: a kill may cost the last second, not more
        assert station.ready.redis_pid
        os.kill(station.ready.redis_pid, signal.SIGKILL)
        await steer(agent, controller, range(20, 60))

        async def complete() -> bool:
            return await series(station) == list(range(1, 60)) and (await history(station))["ok"]

        await eventually(complete, within_s=15)
        assert (await history(station))["dropped"] == 0


async def test_redis_that_hangs(station: RunningStation, controller: Controller) -> None:
    """Steering goes on, health says degraded, live sessions are shown, history answers 503."""
    assert station.ready.redis_pid
    async with station.agent() as agent:
        await steer(agent, controller, range(1, 5))
        os.kill(station.ready.redis_pid, signal.SIGSTOP)
        try:
            await steer(agent, controller, range(5, 10))

            async def degraded() -> bool:
                return not (await history(station))["ok"]

            await eventually(degraded)
            status, health = await station.get("/health")
            assert (status, health["status"]) == (200, "degraded")
            await steer(agent, controller, range(10, 12))
            status, sessions = await station.get("/sessions")
            assert (status, [s["session_id"] for s in sessions]) == (200, ["s1"])
            status, session = await station.get("/sessions/s1")
            assert (status, session["series"]) == (200, [])
            assert "Redis" in session["series_problem"]
            status, answer = await station.get("/decisions")
            assert status == 503
            assert "history is not available now" in answer["detail"]
        finally:
            os.kill(station.ready.redis_pid, signal.SIGCONT)

        async def complete() -> bool:
            return await series(station) == list(range(1, 12))

        await eventually(complete)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB of its own."""
    directory = tmp_path / "disk"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "steerline-test", directory], check=True)
    yield directory
    subprocess.run(["umount", "--lazy", directory], check=True)


async def test_disk_full(small_disk: Path, controller: Controller, start_station: Any) -> None:
    """A full disk stops history and its record, says so, loses nothing stored, and recovers."""
    record = small_disk / "record.jsonl"
    station: RunningStation = await start_station(
        steering_port=controller.port,
        redis={"directory": str(small_disk / "redis")},
        record=str(record),
    )

    async def connected() -> bool:
        return bool(controller.streams)

    await eventually(connected)
    async with station.agent() as agent:
        for number in range(1, 5):
            await agent.ask(report(sequence_number=number, flows=[]))

        async def stored() -> bool:
            return len(await series(station)) == 4 and record.read_text().count("\n") >= 5

        await eventually(stored)
        ballast = small_disk / "ballast"
        with ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass

        async def both_degraded() -> bool:
            number = both_degraded.number = both_degraded.number + 1  # type: ignore[attr-defined]
            await agent.ask(report(sequence_number=number, flows=[]))
            stores = (await station.get("/health"))[1]["history"].values()
            return all(not s["ok"] for s in stores)

        both_degraded.number = 4  # type: ignore[attr-defined]
        await eventually(both_degraded)
        last: int = both_degraded.number  # type: ignore[attr-defined]
        ballast.unlink()

        async def complete() -> bool:
            # Two writers, each at its own pace.
            recorded = record.read_text().count('"kind":"sample"')
            return await series(station) == list(range(1, last + 1)) and recorded >= last

        await eventually(complete, within_s=15)
        text = record.read_text()
        assert text.endswith("\n")
        assert text.count('"kind":"sample"') == last


async def test_memory_is_bounded(controller: Controller, start_station: Any, tmp_path: Path) -> None:
    """The child has no TCP port, the bound that is set, and forgets whole quiet sessions first."""
    station: RunningStation = await start_station(
        steering_port=controller.port, redis={"directory": str(tmp_path / "r"), "max_memory_mb": 16}
    )
    told = subprocess.run(
        ["redis-cli", "-s", str(tmp_path / "r" / "redis.sock"), "config", "get", "maxmemory*", "port"],
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split()
    values = dict(zip(told[::2], told[1::2], strict=True))
    assert values["maxmemory"] == str(16 * 1024 * 1024)
    assert (values["maxmemory-policy"], values["port"]) == ("volatile-ttl", "0")
    assert (await history(station))["ok"]


async def test_external_redis_that_is_not_there(controller: Controller, start_station: Any) -> None:
    """With the URL of a server that does not answer the station starts, degraded."""
    station: RunningStation = await start_station(
        steering_port=controller.port, redis={"url": "redis://127.0.0.1:9/0"}
    )
    async with station.agent() as agent:
        assert (await agent.ask(report(flows=[]))).WhichOneof("message") == "acknowledgement"

        async def degraded() -> bool:
            return not (await history(station))["ok"]

        await eventually(degraded)
    assert (await station.get("/sessions/nobody"))[0] == 503
