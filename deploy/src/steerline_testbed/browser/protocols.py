"""What a browser must be told so that it speaks one version of HTTP to the web server of a run."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any, Literal

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from steerline_testbed.browser.web import HTTP3_PORT

Http = Literal["1.1", "2", "3"]


def chromium_flags(certificate: Path, http: Http, host: str, http3_port: int = HTTP3_PORT) -> list[str]:
    """Options of Chromium that make it trust `certificate` (PEM), by its key and by nothing else, and speak
    this version over TLS. QUIC is off unless it is wanted: a browser that may choose is no measurement.

    `host` is the server's address, and `http3_port` the UDP port that it announces.
    """
    flags = [f"--ignore-certificate-errors-spki-list={key_digest(certificate)}"]
    match http:
        case "1.1":
            return [*flags, "--disable-quic", "--disable-http2"]
        case "2":
            return [*flags, "--disable-quic"]
        case "3":
            # For QUIC the key is not enough: Chromium wants an authority that it knows, except for an origin
            # that QUIC is forced on. That is the announced one, which no address names: the page still comes
            # by HTTP/2, and announces it.
            return [*flags, "--enable-quic", f"--origin-to-force-quic-on={host}:{http3_port}"]


def firefox_preferences(http: Http) -> dict[str, Any]:
    """Preferences of Firefox that make it speak this version over TLS."""
    return {
        "network.http.http2.enabled": http != "1.1",
        "network.http.http3.enable": http == "3",
        # The run's own authority is one that Firefox does not bring.
        "network.http.http3.disable_when_third_party_roots_found": False,
    }


def key_digest(certificate: Path) -> str:
    """SHA-256 of the public key of the first certificate in a PEM file, in base64."""
    key = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    text = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(text).digest()).decode()
