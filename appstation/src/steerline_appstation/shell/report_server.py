"""The gRPC service that agents report to."""

from __future__ import annotations

import asyncio
import ipaddress
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import grpc
import grpc.aio
import structlog

from steerline.report.v1 import report_pb2
from steerline_appstation.clock import Clock
from steerline_appstation.errors import StartError
from steerline_appstation.settings import Tls, split_endpoint
from steerline_appstation.shell.desk import Desk, Received
from steerline_appstation.shell.listening import bind
from steerline_appstation.shell.outbox import Outbox
from steerline_appstation.shell.tls import check_certificate
from steerline_contract.flows import IPAddress

# A report with 32 five-tuples has about 3 kB. 10,000 five-tuples still fit, to be told what is wrong;
# what is larger ends the stream with RESOURCE_EXHAUSTED before it is read.
MAX_MESSAGE_BYTES: Final = 512 * 1024
MAX_STREAMS_PER_ADDRESS: Final = 64
# An address that sends too much is read this slowly, and TCP passes it on.
BRAKE_S: Final = 0.02

_EOF: Final = cast(Any, grpc.aio).EOF  # missing from the stubs

_OPTIONS: Final[list[tuple[str, int]]] = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.max_concurrent_streams", MAX_STREAMS_PER_ADDRESS),
    # Two stations on one port would share the agents in silence.
    ("grpc.so_reuseport", 0),
    # A peer that vanished without a word.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
]


def peer_address(peer: str) -> IPAddress:
    """The address in gRPC's words for a peer, "ipv4:198.18.1.11:4711" or "ipv6:%5B::1%5D:4711"."""
    _, _, rest = peer.partition(":")
    host, _, _ = urllib.parse.unquote(rest).rpartition(":")
    address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


class ReportServer:
    """Listens for agents. `fail` is called with an exception that nobody expected."""

    def __init__(self, desk: Desk, clock: Clock, fail: Callable[[Exception], None]) -> None:
        self._desk = desk
        self._clock = clock
        self._fail = fail
        self._log = structlog.get_logger()
        self._streams: dict[IPAddress, int] = {}
        self._server: Any = None

    @property
    def stream_count(self) -> int:
        """Agents' streams that are open."""
        return sum(self._streams.values())

    async def start(self, endpoint: str, tls: Tls | None) -> int:
        """Listens, and returns the port. Raises StartError."""
        if tls is not None:
            check_certificate(tls)
        # gRPC binds by name only, and says little when it cannot: try first.
        bind("listen.reports", endpoint).close()
        self._server = grpc.aio.server(options=_OPTIONS)
        handler = grpc.stream_stream_rpc_method_handler(
            self._report,
            request_deserializer=self._received,
            response_serializer=report_pb2.ReportResponse.SerializeToString,
        )
        service = report_pb2.DESCRIPTOR.services_by_name["ReportService"].full_name
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {"Report": handler}),)
        )
        host, port = split_endpoint(endpoint)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if tls is None:
                bound = self._server.add_insecure_port(address)
            else:
                pair = (Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes())
                bound = self._server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
        except RuntimeError as error:
            raise StartError(
                f"listen.reports {endpoint}: cannot listen there; allowed: a free port of an address "
                f"of this machine ({error})"
            ) from error
        await self._server.start()
        return bound

    async def stop(self, grace_s: float) -> None:
        """Lets streams finish for at most `grace_s`, then closes them."""
        await self._server.stop(grace_s)

    def _received(self, data: bytes) -> Received:
        """Takes the time first. Parsing comes later: an address may have sent too much already."""
        return Received(self._clock.monotonic_ns(), data)

    async def _report(self, _requests: object, context: Any) -> None:
        peer = peer_address(context.peer())
        if self._streams.get(peer, 0) >= MAX_STREAMS_PER_ADDRESS:
            await context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{peer} has {MAX_STREAMS_PER_ADDRESS} streams; allowed: {MAX_STREAMS_PER_ADDRESS} at once",
            )
        self._streams[peer] = self._streams.get(peer, 0) + 1
        outbox = Outbox()
        sender = asyncio.create_task(outbox.send_all(context.write))
        try:
            await self._read(context, peer, outbox)
            outbox.close()
            await sender
        except Exception as error:
            # grpc.aio would answer UNKNOWN and go on with a state that nobody understands.
            self._fail(error)
            raise
        finally:
            sender.cancel()
            self._desk.hang_up(outbox)
            self._streams[peer] -= 1
            if not self._streams[peer]:
                del self._streams[peer]

    async def _read(self, context: Any, peer: IPAddress, outbox: Outbox) -> None:
        while True:
            received = await context.read()
            if received is _EOF:
                return
            if not self._desk.receive(received, peer, outbox):
                await asyncio.sleep(BRAKE_S)
