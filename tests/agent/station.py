"""A station that only listens: it keeps the reports, acknowledges or rejects them, and dies on order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import trustme

from steerline.report.v1 import report_pb2, report_pb2_grpc

Answer = Callable[[report_pb2.PlaybackReport], list[report_pb2.ReportResponse]]


def acknowledge(report: report_pb2.PlaybackReport) -> list[report_pb2.ReportResponse]:
    """The usual answer."""
    response = report_pb2.ReportResponse()
    response.acknowledgement.session_id = report.session_id
    response.acknowledgement.sequence_number = report.sequence_number
    return [response]


class Station(report_pb2_grpc.ReportServiceServicer):
    """The service. `reports` holds what came, with the number of the stream that brought it."""

    def __init__(self, directory: Path, name: str = "127.0.0.1") -> None:
        self.reports: list[report_pb2.PlaybackReport] = []
        self.arrivals: list[tuple[int, float]] = []
        self.streams = 0
        self.answer: Answer = acknowledge
        self.port = 0
        self.authority = trustme.CA()
        self.ca = directory / "ca.pem"
        self.authority.cert_pem.write_to_path(str(self.ca))
        self._leaf = self.authority.issue_cert(name)
        self._server: grpc.aio.Server | None = None

    @property
    def url(self) -> str:
        """Where the agent reports to."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def arguments(self) -> list[str]:
        """The agent's options for this station."""
        return ["--station", self.url, "--ca", str(self.ca)]

    async def start(self) -> None:
        """Listens; after `die` on the same port again."""
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        report_pb2_grpc.add_ReportServiceServicer_to_server(self, self._server)
        chain = b"".join(blob.bytes() for blob in self._leaf.cert_chain_pems)
        credentials = grpc.ssl_server_credentials([(self._leaf.private_key_pem.bytes(), chain)])
        self.port = self._server.add_secure_port(f"127.0.0.1:{self.port}", credentials)
        await self._server.start()

    async def die(self) -> None:
        """Ends every stream at once and stops listening."""
        if self._server is not None:
            await self._server.stop(grace=None)
            self._server = None

    async def Report(
        self, request_iterator: AsyncIterator[report_pb2.ReportRequest], context: Any
    ) -> AsyncIterator[report_pb2.ReportResponse]:
        """The bidirectional stream."""
        self.streams += 1
        stream = self.streams
        async for request in request_iterator:
            self.reports.append(request.report)
            self.arrivals.append((stream, asyncio.get_running_loop().time()))
            for response in self.answer(request.report):
                yield response

    def of(self, session_id: str) -> list[report_pb2.PlaybackReport]:
        """The reports of one session, as they came."""
        return [report for report in self.reports if report.session_id == session_id]
