"""The stream to the controller: assessments up; decisions, advice, line state down."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import grpc
import grpc.aio
import structlog

from steerline.steering.v1 import steering_pb2, steering_pb2_grpc
from steerline_appstation.clock import Clock
from steerline_appstation.shell.latency import Latency
from steerline_contract import wire
from steerline_contract.steering import Assessment

LEAST_WAIT_S: Final = 0.1
MOST_WAIT_S: Final = 1.0
# A stream that lived this long was a good one: the next try comes at once.
GOOD_STREAM_S: Final = 2.0
# Sessions whose assessment may wait at once; a newer one of the same session takes its place.
MAX_WAITING: Final = 20_000

_OPTIONS: Final[list[tuple[str, int]]] = [
    # The wait between tries is ours; gRPC's own grows to minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 2000),  # how long one try may take
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.enable_http_proxy", 0),
]


class SteeringClient:
    """Keeps one stream to the controller, and tries again while the controller is away."""

    def __init__(
        self,
        target: str,
        ca_file: str,
        clock: Clock,
        jitter: random.Random,
    ) -> None:
        self._target = target
        self._ca_file = ca_file
        self._clock = clock
        self._jitter = jitter
        self._waiting: dict[str, Assessment] = {}
        self._filled = asyncio.Event()
        self._log = structlog.get_logger().bind(controller=target)
        self._said_away = False
        self.connected = False
        self.since_s = clock.unix_s()
        # From a report's arrival to its assessment being handed to the transport.
        self.assessed = Latency()

    @property
    def target(self) -> str:
        """The controller's address."""
        return self._target

    def offer(self, assessment: Assessment) -> None:
        """Sends an assessment as soon as the stream takes it; without a controller it is dropped."""
        if not self.connected:
            return
        if assessment.session_id in self._waiting or len(self._waiting) < MAX_WAITING:
            self._waiting[assessment.session_id] = assessment
            self._filled.set()

    async def run(
        self,
        current: Callable[[], list[Assessment]],
        take: Callable[[steering_pb2.ConnectResponse], None],
    ) -> None:
        """Connects and connects again, until cancelled.

        `current` gives what a controller that just came must know; `take` gets what it says.
        """
        wait_s = LEAST_WAIT_S
        while True:
            began_ns = self._clock.monotonic_ns()
            problem = await self._one_stream(current, take)
            lived_s = (self._clock.monotonic_ns() - began_ns) / 1e9
            good = self.connected and lived_s >= GOOD_STREAM_S
            self._disconnected(problem)
            wait_s = LEAST_WAIT_S if good else min(MOST_WAIT_S, 2 * wait_s)
            await asyncio.sleep(wait_s * self._jitter.uniform(0.5, 1.0))

    async def _one_stream(
        self,
        current: Callable[[], list[Assessment]],
        take: Callable[[steering_pb2.ConnectResponse], None],
    ) -> str:
        async with self._channel() as channel:
            call = cast(Any, steering_pb2_grpc.SteeringServiceStub(channel)).Connect()
            sender: asyncio.Task[None] | None = None
            problem = "the controller ended the stream"
            try:
                # Until the transport is up; the controller may have nothing to say yet.
                await call.wait_for_connection()
                self._connected(current())
                sender = asyncio.create_task(self._send(call))
                # A sender that failed must not leave a stream that only listens.
                sender.add_done_callback(lambda _: call.cancel())
                async for message in call:
                    take(message)
            except grpc.aio.AioRpcError as error:
                problem = f"{error.code().name}: {error.details()}"
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if sender is None or not sender.done() or (task is not None and task.cancelling()):
                    raise
            finally:
                call.cancel()
                if sender is not None:
                    sender.cancel()
                    # The stream's end reaches the sender too, in whichever of these forms.
                    with contextlib.suppress(
                        asyncio.CancelledError, grpc.RpcError, asyncio.InvalidStateError
                    ):
                        await sender
            return problem

    async def _send(self, call: Any) -> None:
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._waiting:
                assessment = self._waiting.pop(next(iter(self._waiting)))
                await call.write(steering_pb2.ConnectRequest(assessment=wire.assessment_message(assessment)))
                if assessment.received_monotonic_ns:
                    taken_ns = self._clock.monotonic_ns() - assessment.received_monotonic_ns
                    self.assessed.add(taken_ns / 1e6)

    def _channel(self) -> Any:
        if not self._ca_file:
            return grpc.aio.insecure_channel(self._target, options=_OPTIONS)
        credentials = grpc.ssl_channel_credentials(Path(self._ca_file).read_bytes())
        return grpc.aio.secure_channel(self._target, credentials, options=_OPTIONS)

    def _connected(self, current: list[Assessment]) -> None:
        self.connected = True
        self.since_s = self._clock.unix_s()
        self._log.info("controller-connected", sessions=len(current))
        for assessment in current:
            # Not a fresh report: no latency is measured from it.
            self.offer(dataclasses.replace(assessment, received_monotonic_ns=0))

    def _disconnected(self, problem: str) -> None:
        self._waiting.clear()
        if self.connected or not self._said_away:
            self._log.warning("controller-away", problem=problem)
            self._said_away = True
        if self.connected:
            self.connected = False
            self.since_s = self._clock.unix_s()
