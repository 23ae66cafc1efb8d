"""Binding a socket, with an error that names the setting."""

from __future__ import annotations

import socket

from steerline_appstation.errors import StartError
from steerline_appstation.settings import split_endpoint


def bind(setting: str, endpoint: str) -> socket.socket:
    """A TCP socket bound to an endpoint, not listening yet. Raises StartError."""
    host, port = split_endpoint(endpoint)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise StartError(
            f"{setting} {endpoint}: {error.strerror}; allowed: a free port of an address of this machine"
        ) from error
    return bound
