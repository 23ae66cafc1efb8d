"""A station as a process: clock, chance, signals and the ready line around it."""

from __future__ import annotations

import asyncio
import gc
import random
import signal

import structlog

from steerline_appstation import logs
from steerline_appstation.application import Ready, serve
from steerline_appstation.clock import Clock
from steerline_appstation.settings import Settings


def run(loaded: Settings) -> None:
    """Runs until SIGTERM or SIGINT. Raises StartError; anything else is a bug."""
    logs.configure(loaded.log_format, loaded.log_level)
    asyncio.run(_serve(loaded))


async def _serve(loaded: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def ready(at: Ready) -> None:
        print(
            f"event=ready reports={at.reports} rest={at.rest} web={at.web} redis_pid={at.redis_pid or ''}",
            flush=True,
        )
        structlog.get_logger().info(
            "ready", reports=at.reports, rest=at.rest, web=at.web, redis_pid=at.redis_pid
        )
        # What lives now lives on; the collector need not look at it again while reports wait.
        gc.collect()
        gc.freeze()

    await serve(loaded, clock=Clock(), jitter=random.Random(), ready=ready, stop=stop)
    structlog.get_logger().info("stopped")
