"""A station on loopback with real gRPC, TLS and Redis."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from steerline_appstation.application import Ready, serve
from steerline_appstation.clock import Clock
from steerline_appstation.settings import Settings

from .support import Controller, RunningStation, eventually


@pytest.fixture
async def controller() -> AsyncIterator[Controller]:
    """A controller that runs."""
    double = Controller()
    await double.start()
    yield double
    await double.stop()


@pytest.fixture
async def start_station(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[RunningStation]]]:
    """Starts stations, and stops them in the end."""
    running: list[RunningStation] = []

    async def start(*, steering_port: int, tls: bool = False, **values: Any) -> RunningStation:
        values.setdefault("listen", {"reports": "127.0.0.1:0", "rest": "127.0.0.1:0"})
        values.setdefault("redis", {"directory": str(tmp_path / "redis")})
        ca_pem = None
        if tls:
            authority = trustme.CA()
            certificate = authority.issue_cert("127.0.0.1")
            certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
            certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
            ca_pem = authority.cert_pem.bytes()
            values["tls"] = {"certificate": str(tmp_path / "cert.pem"), "key": str(tmp_path / "key.pem")}
        settings = Settings.model_validate({"steering": f"127.0.0.1:{steering_port}", **values})
        ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        stop = asyncio.Event()
        task = asyncio.create_task(
            serve(settings, clock=Clock(), jitter=random.Random(1), ready=ready.set_result, stop=stop)
        )
        await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        station = RunningStation(await ready, ca_pem, task, stop)
        running.append(station)
        return station

    yield start
    for station in running:
        station.stop.set()
    for station in running:
        if not station.task.done():  # A test that lets it fail looks at that itself.
            async with asyncio.timeout(10):
                await station.task


@pytest.fixture
async def station(
    controller: Controller, start_station: Callable[..., Awaitable[RunningStation]]
) -> RunningStation:
    """A station with TLS, connected to the controller."""
    started = await start_station(
        steering_port=controller.port,
        tls=True,
        customer_networks=["127.0.0.0/8", "198.18.0.0/16"],
        listen={"reports": "127.0.0.1:0", "rest": "127.0.0.1:0", "web": "127.0.0.1:0"},
    )

    async def connected() -> bool:
        return bool(controller.streams)

    await eventually(connected)
    return started
