"""A controller that only listens, an agent, and words to make reports with."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, cast

import grpc
import grpc.aio

from steerline.flow.v1 import flow_pb2
from steerline.report.v1 import report_pb2, report_pb2_grpc
from steerline.steering.v1 import steering_pb2, steering_pb2_grpc
from steerline_appstation.application import Ready
from steerline_appstation.clock import Clock


class Controller:
    """Keeps the assessments it gets, and says what a test tells it to say."""

    def __init__(self) -> None:
        self.assessments: asyncio.Queue[flow_pb2.Assessment] = asyncio.Queue()
        self.streams: list[asyncio.Queue[steering_pb2.ConnectResponse]] = []
        self.port = 0
        self.enforce = False
        self._server: Any = None

    async def connect(self, request_iterator: Any, context: Any) -> None:
        """One station's stream."""
        answers: asyncio.Queue[steering_pb2.ConnectResponse] = asyncio.Queue()
        self.streams.append(answers)

        async def speak() -> None:
            while True:
                await context.write(await answers.get())

        speaker = asyncio.create_task(speak())
        try:
            async for request in request_iterator:
                self.assessments.put_nowait(request.assessment)
                if self.enforce and request.assessment.received_monotonic_ns:
                    answers.put_nowait(
                        steering_pb2.ConnectResponse(
                            enforced=steering_pb2.Enforced(
                                session_id=request.assessment.session_id,
                                received_monotonic_ns=request.assessment.received_monotonic_ns,
                                enforced_monotonic_ns=Clock().monotonic_ns(),
                                moved_flow_count=1,
                            )
                        )
                    )
        finally:
            speaker.cancel()
            self.streams.remove(answers)

    def say(self, response: steering_pb2.ConnectResponse) -> None:
        """Sends to every station that is connected."""
        for answers in self.streams:
            answers.put_nowait(response)

    async def next(self, within_s: float = 5.0) -> flow_pb2.Assessment:
        """The next assessment."""
        async with asyncio.timeout(within_s):
            return await self.assessments.get()

    async def start(self) -> None:
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        cast(Any, steering_pb2_grpc).add_SteeringServiceServicer_to_server(_Servicer(self), self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(0)


class _Servicer(cast(Any, steering_pb2_grpc).SteeringServiceServicer):
    def __init__(self, controller: Controller) -> None:
        self.Connect = controller.connect


@dataclasses.dataclass
class RunningStation:
    """A station under test."""

    ready: Ready
    ca: bytes | None
    task: asyncio.Task[None]
    stop: asyncio.Event

    @contextlib.asynccontextmanager
    async def agent(self) -> AsyncGenerator[Agent]:
        """A new agent with its own connection and stream."""
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
        if self.ca:
            credentials = grpc.ssl_channel_credentials(self.ca)
            channel = grpc.aio.secure_channel(self.ready.reports, credentials, options=options)
        else:
            channel = grpc.aio.insecure_channel(self.ready.reports, options=options)
        async with channel:
            call: Any = report_pb2_grpc.ReportServiceStub(channel).Report()
            try:
                yield Agent(call)
            finally:
                call.cancel()

    async def get(self, path: str) -> tuple[int, Any]:
        """(status, JSON) of a path of REST."""
        return await http_get(self.ready.rest, path)


class Agent:
    """One report stream."""

    def __init__(self, call: Any) -> None:
        self.call = call

    async def send(self, report: report_pb2.PlaybackReport) -> None:
        await self.call.write(report_pb2.ReportRequest(report=report))

    async def read(self, within_s: float = 5.0) -> report_pb2.ReportResponse:
        async with asyncio.timeout(within_s):
            response = await self.call.read()
        if response is cast(Any, grpc.aio).EOF:
            raise EOFError(f"{await self.call.code()}: {await self.call.details()}")
        return response

    async def ask(self, report: report_pb2.PlaybackReport) -> report_pb2.ReportResponse:
        """Sends a report and reads on to its acknowledgement or rejection."""
        await self.send(report)
        while True:
            response = await self.read()
            if response.WhichOneof("message") in ("acknowledgement", "rejection"):
                return response

    async def until(self, kind: str, within_s: float = 5.0) -> Any:
        """Reads on to the next message of a kind."""
        async with asyncio.timeout(within_s):
            while True:
                response = await self.read(within_s)
                if response.WhichOneof("message") == kind:
                    return getattr(response, kind)


async def http_get(endpoint: str, path: str) -> tuple[int, Any]:
    """A GET over loopback without a library: status and decoded JSON."""
    host, _, port = endpoint.rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
    raw = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = raw.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def report(session_id: str = "s1", sequence_number: int = 1, **fields: Any) -> report_pb2.PlaybackReport:
    """A good report, changed by `fields`."""
    values: dict[str, Any] = {
        "timestamp_ms": 1_000_000 + 1000 * sequence_number,
        "cause": report_pb2.REPORT_CAUSE_PERIODIC,
        "player_state": flow_pb2.PLAYER_STATE_PLAYING,
        "buffer_length_ms": 50_000,
        "encoded_bitrate_kbps": 2728,
        "top_bitrate_kbps": 2728,
        "target_buffer_ms": 55_000,
        "playback_rate": 1.0,
        "remaining_media_ms": 600_000,
        "flows": [tuple_()],
        "player_name": "test",
    }
    values.update(fields)
    return report_pb2.PlaybackReport(session_id=session_id, sequence_number=sequence_number, **values)


def tuple_(client: str = "", client_port: int = 40_000, server: str = "198.19.0.1") -> flow_pb2.FiveTuple:
    """A media connection to port 80."""
    return flow_pb2.FiveTuple(
        protocol=6, client_address=client, client_port=client_port, server_address=server, server_port=80
    )


async def eventually(check: Callable[[], Awaitable[Any]], within_s: float = 10.0) -> Any:
    """Waits until `check` gives something true, and returns that."""
    async with asyncio.timeout(within_s):
        while True:
            found = await check()
            if found:
                return found
            await asyncio.sleep(0.05)
