"""A whole station: builds the parts, runs them, and takes them down in order."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from steerline_appstation.clock import Clock
from steerline_appstation.rest.api import create_api
from steerline_appstation.rest.server import RestServer
from steerline_appstation.rest.view import View
from steerline_appstation.settings import Settings, split_endpoint
from steerline_appstation.shell.desk import Desk
from steerline_appstation.shell.report_server import ReportServer
from steerline_appstation.shell.steering_client import SteeringClient
from steerline_appstation.store.jsonl import JsonLines
from steerline_appstation.store.redis_child import PrivateRedis
from steerline_appstation.store.redis_store import RedisStore
from steerline_appstation.store.writer import Writer
from steerline_appstation.web.api import create_web_api
from steerline_appstation.web.intake import Intake
from steerline_appstation.web.server import WebServer

EXPIRE_EVERY_S: Final = 0.2
STREAMS_GRACE_S: Final = 0.3
FLUSH_WITHIN_S: Final = 0.4
READERS_WITHIN_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Ready:
    """Where a station that started listens. `web` is empty, and `redis_pid` None, where there is none."""

    reports: str
    rest: str
    web: str
    redis_pid: int | None


async def serve(
    settings: Settings,
    *,
    clock: Clock,
    jitter: random.Random,
    ready: Callable[[Ready], None],
    stop: asyncio.Event,
) -> None:
    """Runs a station until `stop` is set.

    Raises StartError where it cannot start; any other exception (in a group) is one that nobody
    expected and ends the station.
    """
    async with contextlib.AsyncExitStack() as stack:
        child: PrivateRedis | None = None
        url = settings.redis.url
        if not url:
            child = PrivateRedis(Path(settings.redis.directory), settings.redis.max_memory_mb)
            await stack.enter_async_context(child.running())
            url = child.url
        store = RedisStore(url, settings.retention_s)
        stack.push_async_callback(store.close)
        writers = {"redis": Writer("redis", store, clock)}
        if settings.record:
            writers["record"] = Writer("record", JsonLines(Path(settings.record)), clock)
        steering = SteeringClient(settings.steering, settings.steering_ca, clock, jitter)
        desk = Desk(settings.policy(), clock, steering, tuple(writers.values()))
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        reports = ReportServer(desk, clock, lambda error: _fail(failed, error))
        started_s = clock.monotonic_ns() / 1e9
        api = create_api(View(desk, reports, steering, store, writers, clock, started_s))
        rest = RestServer(api, settings.listen.rest, settings.tls)
        stack.callback(rest.close)
        web: WebServer | None = None
        if settings.listen.web:
            web_api = create_web_api(Intake(desk, clock), lambda error: _fail(failed, error))
            web = WebServer(web_api, settings.listen.web, settings.tls, lambda error: _fail(failed, error))
            stack.callback(web.close)
        reports_port = await reports.start(settings.listen.reports, settings.tls)
        async with asyncio.TaskGroup() as group:
            serving = [group.create_task(rest.run())]
            if web is not None:
                serving.append(group.create_task(web.run()))
            forever = [
                group.create_task(_wait(failed)),
                group.create_task(_expire(desk)),
                group.create_task(steering.run(desk.current, desk.news.take)),
                *(group.create_task(writer.run()) for writer in writers.values()),
            ]
            if child is not None:
                forever.append(group.create_task(child.keep()))
            ready(
                Ready(
                    _with_port(settings.listen.reports, reports_port),
                    _with_port(settings.listen.rest, rest.port),
                    _with_port(settings.listen.web, web.port) if web is not None else "",
                    child.pid if child else None,
                )
            )
            try:
                await stop.wait()
            finally:
                # New reports first, then what they led to, then history.
                if web is not None:
                    web.stop()
                rest.stop()
                await reports.stop(STREAMS_GRACE_S)
                for task in forever:
                    task.cancel()
                await _flush(writers)
            # A reader that waits for a store that hangs does not hold up the end.
            _, unfinished = await asyncio.wait(serving, timeout=READERS_WITHIN_S)
            for task in unfinished:
                task.cancel()


def _fail(failed: asyncio.Future[None], error: Exception) -> None:
    if not failed.done():
        failed.set_exception(error)


async def _wait(failed: asyncio.Future[None]) -> None:
    await failed


async def _expire(desk: Desk) -> None:
    while True:
        await asyncio.sleep(EXPIRE_EVERY_S)
        desk.expire()


async def _flush(writers: dict[str, Writer]) -> None:
    lost = await asyncio.gather(*(writer.flush(FLUSH_WITHIN_S) for writer in writers.values()))
    for name, count in zip(writers, lost, strict=True):
        if count:
            structlog.get_logger().warning("history-lost", store=name, records=count)


def _with_port(endpoint: str, port: int) -> str:
    host, _ = split_endpoint(endpoint)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
