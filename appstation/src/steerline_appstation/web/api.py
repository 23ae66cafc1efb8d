"""The one route that customers reach. The operator's are another application on another listener."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, Final, cast

from fastapi import FastAPI, HTTPException
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from steerline_appstation.rest.models import Detail
from steerline_appstation.shell.report_server import BRAKE_S
from steerline_appstation.web.body import BODY_WITHIN_S, MAX_BODY_BYTES, read_body
from steerline_appstation.web.intake import Intake
from steerline_appstation.web.models import WebRequest, WebResponse
from steerline_contract.errors import InvalidValueError
from steerline_contract.flows import IPAddress, parse_address

# Extensions of Chromium and Firefox. A page that a customer happens to visit is none.
_EXTENSION: Final = r"(chrome|moz)-extension://[A-Za-z0-9-]{1,64}"
# How long a browser need not ask again, s.
_PREFLIGHT_HOLDS_S: Final = 86_400

_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": Detail, "description": "The body is no JSON."},
    403: {"model": Detail, "description": "The Origin is a web page's."},
    408: {"model": Detail, "description": f"The body took longer than {BODY_WITHIN_S:g} s."},
    413: {"model": Detail, "description": f"The body has more than {MAX_BODY_BYTES} bytes."},
    415: {"model": Detail, "description": "The Content-Type is not application/json."},
    422: {"model": Detail, "description": "The body is JSON, but no list of 1 to 64 reports."},
    429: {"model": Detail, "description": "This address sends too much."},
}


def create_web_api(intake: Intake, fail: Callable[[Exception], None]) -> FastAPI:
    """The application over the desk. `fail` is called with an exception that nobody expected."""
    api = _WebApi(
        title="Steerline reports",
        version="1",
        description="For browser extensions without a native host: reports of what players hold, and what "
        "the network says about them. A wrong report is answered by a rejection; the others count.",
        docs_url=None,
        redoc_url=None,
    )
    api.add_middleware(
        CORSMiddleware,
        allow_origin_regex=_EXTENSION,
        allow_methods=["POST"],
        allow_headers=["content-type"],
        allow_private_network=True,
        max_age=_PREFLIGHT_HOLDS_S,
    )

    @api.post(
        "/reports",
        responses=_ERRORS,
        response_model=WebResponse,
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/WebRequest"}}},
            }
        },
    )
    async def reports(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        """Takes the latest report of each session, and answers what there is to say of these sessions."""
        _only_from_an_extension(request)
        try:
            body = await read_body(request)
        except ClientDisconnect:
            return Response(status_code=400)  # Nobody reads it.
        peer = _peer(request)
        too_much = intake.admit(peer, len(body))
        if too_much is not None:
            await asyncio.sleep(BRAKE_S)
            raise HTTPException(429, too_much.message, {"Retry-After": "1"})
        try:
            answer = intake.take(body, peer)
        except InvalidValueError as error:
            raise HTTPException(400 if "not JSON" in str(error) else 422, str(error)) from None
        except Exception as error:
            # The state is one that nobody understands: better to start anew than to go on.
            fail(error)
            raise
        return JSONResponse(answer.model_dump(), headers={"Cache-Control": "no-store"})

    return api


class _WebApi(FastAPI):
    """The body is read by hand, bounded; its model is written into the OpenAPI document here."""

    def openapi(self) -> dict[str, Any]:
        """The document, made once."""
        if self.openapi_schema is None:
            document = get_openapi(
                title=self.title, version=self.version, description=self.description, routes=self.routes
            )
            request = WebRequest.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas = cast("dict[str, Any]", document["components"]["schemas"])
            schemas.update(request.pop("$defs"))
            schemas["WebRequest"] = request
            self.openapi_schema = document
        return self.openapi_schema


def _only_from_an_extension(request: Request) -> None:
    """Keeps pages from reporting in the name of those who visit them.

    A page's request with this type of content is preceded by a preflight, which fails. Firefox may
    hide an extension's origin ("null"), and what is no browser has none.
    """
    origin = request.headers.get("origin")
    if origin not in (None, "null") and not re.fullmatch(_EXTENSION, origin):
        raise HTTPException(403, f"Origin is {origin[:80]!r}; allowed: none, or a browser extension's")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, f"Content-Type is {kind[:80]!r}; allowed: application/json")


def _peer(request: Request) -> IPAddress:
    """The address that the station sees; what a header says of it does not count."""
    if request.client is None:
        raise HTTPException(400, "the connection has no address")
    return parse_address(request.client.host.partition("%")[0])
