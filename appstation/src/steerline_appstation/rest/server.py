"""uvicorn inside the station's own event loop."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

import uvicorn
from fastapi import FastAPI

from steerline_appstation.settings import Tls, is_loopback
from steerline_appstation.shell.listening import bind
from steerline_appstation.shell.tls import check_certificate


class QuietServer(uvicorn.Server):
    """A server that leaves signals alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals are the station's, not uvicorn's."""
        yield


class RestServer:
    """Serves the API on one endpoint. TLS off loopback."""

    def __init__(self, api: FastAPI, endpoint: str, tls: Tls | None) -> None:
        self._socket = bind("listen.rest", endpoint)
        self._socket.listen(128)
        self._socket.setblocking(False)
        certificate = key = None
        if tls is not None and not is_loopback(endpoint):
            check_certificate(tls)
            certificate, key = tls.certificate, tls.key
        config = uvicorn.Config(
            api,
            lifespan="off",
            access_log=False,
            log_config=None,
            log_level="warning",
            server_header=False,
            ws="none",
            http="h11",
            limit_concurrency=256,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=1,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        self._server = QuietServer(config)

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
