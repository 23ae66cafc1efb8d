"""Reading a request's body, no larger and no longer than it may be."""

from __future__ import annotations

import asyncio
from typing import Final

from fastapi import HTTPException
from starlette.requests import Request

from steerline_appstation.shell.report_server import MAX_MESSAGE_BYTES

# As much as one message of gRPC: a list of 10,000 servers still fits, to be told what is wrong.
MAX_BODY_BYTES: Final = MAX_MESSAGE_BYTES
# A larger body is read on (and thrown away) up to here, so that its sender hears why it was refused.
MAX_READ_BYTES: Final = 4 * 1024 * 1024
BODY_WITHIN_S: Final = 5.0


async def read_body(request: Request) -> bytes:
    """The body. Raises HTTPException 408 (too slow) or 413 (too large); ClientDisconnect."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > MAX_READ_BYTES:
        raise _too_large(f"{declared} bytes")
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size > MAX_READ_BYTES:
                    break
                if size > MAX_BODY_BYTES:
                    chunks.clear()
                else:
                    chunks.append(chunk)
    except TimeoutError:
        raise HTTPException(
            408,
            f"the body is not complete; allowed: {BODY_WITHIN_S:g} s for all of it",
            {"Connection": "close"},
        ) from None
    if size > MAX_BODY_BYTES:
        raise _too_large(f"more than {MAX_BODY_BYTES} bytes" if size > MAX_READ_BYTES else f"{size} bytes")
    return b"".join(chunks)


def _too_large(size: str) -> HTTPException:
    return HTTPException(
        413, f"the body has {size}; allowed: at most {MAX_BODY_BYTES}", {"Connection": "close"}
    )
