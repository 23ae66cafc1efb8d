"""The steering service. A thread of its own with its own event loop: it only fills the inbox, and reads
what the deciding thread gives away."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from typing import TypeVar

import grpc
import structlog

from steerline.steering.v1 import steering_pb2 as pb
from steerline.steering.v1 import steering_pb2_grpc as rpc
from steerline_contract import wire as words
from steerline_contract.errors import InvalidValueError
from steerline_contract.steering import Decision, DecisionKind
from steerline_controller.core.events import DrainLine, PinSession, ReleaseSession, SteerSession
from steerline_controller.shell import states
from steerline_controller.shell.clock import Clock
from steerline_controller.shell.inputs import (
    Asked,
    Inbox,
    OperatorEvent,
    Said,
    Shown,
    UnknownNameError,
    UnusableNameError,
)
from steerline_controller.shell.publish import Publisher, Stream
from steerline_controller.shell.settings import TlsSettings

LOG = structlog.get_logger()

_T = TypeVar("_T")
_ANSWER_S = 5.0
_MAX_MESSAGE = 1 << 20


class SteeringService(rpc.SteeringServiceServicer):
    """Turns calls into inputs, and answers into messages."""

    def __init__(self, inbox: Inbox, publisher: Publisher, clock: Clock) -> None:
        self._inbox = inbox
        self._publisher = publisher
        self._clock = clock

    async def Connect(  # noqa: N802 - the contract's name
        self,
        request_iterator: AsyncIterator[pb.ConnectRequest],
        context: grpc.aio.ServicerContext[pb.ConnectRequest, pb.ConnectResponse],
    ) -> AsyncIterator[pb.ConnectResponse]:
        """A station's stream."""
        loop, waiting = asyncio.get_running_loop(), asyncio.Event()
        stream = self._publisher.add(context.peer(), lambda: _wake(loop, waiting))
        LOG.info("station connected", peer=stream.peer)
        reader = asyncio.create_task(self._read(request_iterator, stream))
        reader.add_done_callback(lambda _: waiting.set())
        try:
            while not reader.done():
                await waiting.wait()
                waiting.clear()
                for message in stream.take():
                    yield message
        finally:
            self._publisher.remove(stream)
            reader.cancel()
            LOG.info("station gone", peer=stream.peer)

    async def _read(self, requests: AsyncIterator[pb.ConnectRequest], stream: Stream) -> None:
        said = -1e9
        async for request in requests:
            try:
                assessment = words.assessment(request.assessment)
            except InvalidValueError as error:
                # The stream goes on: one wrong session must not cost the others their protection.
                stream.put(pb.ConnectResponse(decision=words.decision_message(self._refusal(request, error))))
                if time.monotonic() - said > 10:
                    said = time.monotonic()
                    LOG.warning("assessment refused", peer=stream.peer, why=str(error))
                continue
            self._inbox.put(Said(assessment))

    def _refusal(self, request: pb.ConnectRequest, error: InvalidValueError) -> Decision:
        return Decision(
            kind=DecisionKind.KEEP,
            time_s=self._clock.now(),
            site="",
            reason=f"assessment refused: {error}",
            strategy="controller",
            session_id=request.assessment.session_id[:64],
        )

    async def _ask(
        self, make: Callable[[], OperatorEvent], context: grpc.aio.ServicerContext[object, object]
    ) -> tuple[Decision, ...]:
        answer: Future[tuple[Decision, ...]] = Future()
        try:
            self._inbox.put(Asked(make(), answer))
            return await _within(answer)
        except UnknownNameError as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, str(error))
        except (InvalidValueError, UnusableNameError) as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except TimeoutError:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"no answer within {_ANSWER_S:g} s")

    async def SteerSession(  # noqa: N802
        self, request: pb.SteerSessionRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.SteerSessionResponse:
        """Moves a session's flows now."""
        made = await self._ask(
            lambda: SteerSession(words.session_id(request.session_id), _line(request.line)), context
        )
        return pb.SteerSessionResponse(decisions=[words.decision_message(d) for d in made])

    async def ReleaseSession(  # noqa: N802
        self, request: pb.ReleaseSessionRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.ReleaseSessionResponse:
        """Ends protection and pin."""
        made = await self._ask(lambda: ReleaseSession(words.session_id(request.session_id)), context)
        return pb.ReleaseSessionResponse(decisions=[words.decision_message(d) for d in made])

    async def PinSession(  # noqa: N802
        self, request: pb.PinSessionRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.PinSessionResponse:
        """Moves a session's flows and keeps them there."""
        made = await self._ask(
            lambda: PinSession(words.session_id(request.session_id), _line(request.line)), context
        )
        return pb.PinSessionResponse(decisions=[words.decision_message(d) for d in made])

    async def DrainLine(  # noqa: N802
        self, request: pb.DrainLineRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.DrainLineResponse:
        """Takes a line out of use, or back."""
        made = await self._ask(lambda: DrainLine(request.site, _line(request.line), request.drain), context)
        return pb.DrainLineResponse(decisions=[words.decision_message(d) for d in made])

    async def GetState(  # noqa: N802
        self,
        request: pb.GetStateRequest,  # noqa: ARG002 - it is empty
        context: grpc.aio.ServicerContext[object, object],
    ) -> pb.GetStateResponse:
        """The state now."""
        shown = Shown(Future())
        self._inbox.put(shown)
        try:
            return states.state_message(await _within(shown.answer))
        except TimeoutError:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"no answer within {_ANSWER_S:g} s")


def _line(name: str) -> str:
    if not 1 <= len(name) <= 32:
        raise InvalidValueError("line", name, "the name of a line, 1 to 32 characters")
    return name


def _within(answer: Future[_T]) -> Awaitable[_T]:
    return asyncio.wait_for(asyncio.wrap_future(answer), _ANSWER_S)


def _wake(loop: asyncio.AbstractEventLoop, waiting: asyncio.Event) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(waiting.set)


class SteeringServer:
    """The service on its address, in its thread."""

    def __init__(self, service: SteeringService, listen: str, tls: TlsSettings | None) -> None:
        self._service = service
        self._listen = listen
        self._tls = tls
        self._ready: Future[int] = Future()
        self._stop: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="steering", daemon=True)

    def start(self) -> int:
        """Listens; the port. Raises OSError when that is not possible."""
        self._thread.start()
        return self._ready.result()

    def stop(self) -> None:
        """Ends all streams."""
        self._stop.set_result(None)
        self._thread.join(3.0)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        server = grpc.aio.server(
            options=[
                ("grpc.so_reuseport", 0),  # a second controller must not share the port quietly
                ("grpc.max_receive_message_length", _MAX_MESSAGE),
                ("grpc.keepalive_time_ms", 10_000),  # a station that is gone is noticed
                ("grpc.keepalive_timeout_ms", 5_000),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ]
        )
        rpc.add_SteeringServiceServicer_to_server(self._service, server)
        try:
            port = self._bind(server)
            if port == 0:
                raise OSError(f"cannot listen on {self._listen}")
        except (RuntimeError, OSError) as error:
            self._ready.set_exception(OSError(str(error)))
            return
        await server.start()
        self._ready.set_result(port)
        await asyncio.wrap_future(self._stop)
        await server.stop(0.5)

    def _bind(self, server: grpc.aio.Server) -> int:
        if self._tls is None:
            return server.add_insecure_port(self._listen)
        ca = self._tls.client_ca.read_bytes() if self._tls.client_ca else None
        credentials = grpc.ssl_server_credentials(
            [(self._tls.key.read_bytes(), self._tls.certificate.read_bytes())],
            root_certificates=ca,
            require_client_auth=ca is not None,
        )
        return server.add_secure_port(self._listen, credentials)
