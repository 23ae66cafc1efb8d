"""Certificates are read before anything listens, so that an error names the file."""

from __future__ import annotations

import ssl

from steerline_appstation.errors import StartError
from steerline_appstation.settings import Tls


def check_certificate(tls: Tls) -> None:
    """Raises StartError where certificate or key cannot be read, or do not belong together."""
    for name, path in (("certificate", tls.certificate), ("key", tls.key)):
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                file.read(1)
        except OSError as error:
            raise StartError(f"tls.{name} {path}: {error.strerror}") from error
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tls.certificate, tls.key)
    except ssl.SSLError as error:
        raise StartError(
            f"tls.certificate {tls.certificate} and tls.key {tls.key}: {error.reason or error}; "
            "allowed: a PEM certificate and its own PEM key"
        ) from error
