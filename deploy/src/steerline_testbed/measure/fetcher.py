"""A customer that asks for one piece after the other over one connection, as players do.

    python -m steerline_testbed.measure.fetcher --server 198.19.0.2 --piece 645000 --settle 10 --seconds 60

Prints the bytes that arrived after it has settled. `--piece 0` asks once, for everything.
"""

from __future__ import annotations

import argparse
import socket
import time

_READ_BYTES = 1 << 18


def fetch(server: str, piece_bytes: int, settle_s: float, seconds: float) -> int:
    """Bytes read within `seconds` after `settle_s`. Raises OSError, and RuntimeError for another answer."""
    from_s = time.monotonic() + settle_s
    until_s = from_s + seconds
    got = 0
    with socket.create_connection((server, 80), timeout=10.0) as connection:
        offset = 0
        while time.monotonic() < until_s:
            connection.sendall(_request(server, offset, piece_bytes))
            missing = _head(connection)
            offset += missing
            while missing > 0 and time.monotonic() < until_s:
                count = len(connection.recv(min(_READ_BYTES, missing)))
                if count == 0:
                    raise RuntimeError(f"{server} closed the connection in the middle of a piece")
                missing -= count
                got += count if time.monotonic() >= from_s else 0
    return got


def _request(server: str, offset: int, piece_bytes: int) -> bytes:
    wanted = f"Range: bytes={offset}-{offset + piece_bytes - 1}\r\n" if piece_bytes else ""
    return f"GET /big.bin HTTP/1.1\r\nHost: {server}\r\n{wanted}\r\n".encode()


def _head(connection: socket.socket) -> int:
    """Reads an answer's head alone; returns the length of its body."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte:
            raise RuntimeError("the server closed the connection before it answered")
        head += byte
    first, *lines = head.decode("latin-1").splitlines()
    if first.split()[1] not in ("200", "206"):
        raise RuntimeError(f"the server answered {first!r}")
    fields = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
    return int(fields["content-length"])


def main() -> None:
    """Fetches, and prints how much."""
    parser = argparse.ArgumentParser(prog="fetcher", description="one piece after the other")
    parser.add_argument("--server", required=True)
    parser.add_argument("--piece", type=int, required=True, help="bytes of each; 0: all in one")
    parser.add_argument("--settle", type=float, default=0.0, help="seconds that do not count")
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    print(fetch(options.server, options.piece, options.settle, options.seconds))


if __name__ == "__main__":
    main()
