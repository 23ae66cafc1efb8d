"""uvicorn for strangers: bounded connections, TLS wherever the station has a certificate."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI

from steerline_appstation.rest.server import QuietServer
from steerline_appstation.settings import Tls
from steerline_appstation.shell.listening import bind
from steerline_appstation.shell.tls import check_certificate
from steerline_appstation.web.connections import Acceptor, BoundedProtocol

MAX_HEADER_BYTES = 16 * 1024


class _Server(QuietServer):
    """Accepts through an Acceptor in place of asyncio's own loop, which knows no bounds."""

    def __init__(self, config: uvicorn.Config, fail: Callable[[Exception], None]) -> None:
        super().__init__(config)
        self._fail = fail
        self._acceptor: Acceptor | None = None
        self._accepting: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to accept."""
        assert sockets is not None
        self.servers = []
        self._acceptor = Acceptor(
            sockets[0],
            self.config.ssl,
            lambda: BoundedProtocol(self.config, self.server_state, {}, asyncio.get_running_loop()),
        )
        self._accepting = asyncio.create_task(self._acceptor.run())
        self._accepting.add_done_callback(self._ended)
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accepts no more, lets requests finish, and lets go."""
        if self._accepting is not None:
            self._accepting.cancel()
        try:
            await super().shutdown(sockets)
        finally:
            if self._acceptor is not None:
                self._acceptor.end()

    def _ended(self, accepting: asyncio.Task[None]) -> None:
        error = None if accepting.cancelled() else accepting.exception()
        if isinstance(error, Exception):
            self._fail(error)


class WebServer:
    """Serves the web API on one endpoint. `fail` is called with an exception that nobody expected."""

    def __init__(
        self, api: FastAPI, endpoint: str, tls: Tls | None, fail: Callable[[Exception], None]
    ) -> None:
        files: dict[str, Any] = {}
        if tls is not None:
            check_certificate(tls)
            files = {"ssl_certfile": tls.certificate, "ssl_keyfile": tls.key}
        self._socket = bind("listen.web", endpoint)
        self._socket.listen(128)
        self._socket.setblocking(False)
        config = uvicorn.Config(
            api,
            lifespan="off",
            access_log=False,
            log_config=None,
            log_level="critical",  # What strangers do wrong is no news.
            server_header=False,
            # Whom a header names is not who speaks.
            proxy_headers=False,
            ws="none",
            http=BoundedProtocol,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            timeout_keep_alive=20,
            timeout_graceful_shutdown=1,
            **files,
        )
        self._server = _Server(config, fail)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._socket.getsockname()[1]

    async def run(self) -> None:
        """Serves until `stop`."""
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        """Ends `run`, open requests within a second."""
        self._server.should_exit = True

    def close(self) -> None:
        """Lets go of the port, also where `run` never ran."""
        self._socket.close()
