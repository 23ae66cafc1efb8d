"""The routes. They read what is in memory, and ask the store for history."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends, FastAPI, HTTPException, Path, Query
from fastapi.responses import JSONResponse
from starlette.requests import Request

from steerline_appstation.errors import StoreUnavailableError
from steerline_appstation.rest.models import (
    Detail,
    Health,
    LatencyFigures,
    LatencyReport,
    LineWithSeries,
    SessionWithSeries,
)
from steerline_appstation.rest.view import View
from steerline_appstation.store.records import DecisionRecord, LineRecord, SessionRecord

# More at once would hold up the event loop that also steers.
MOST: Final = 1000

Limit = Annotated[int, Query(ge=1, le=MOST, description=f"At most so many, 1 to {MOST}.")]
Since = Annotated[
    float, Query(ge=0, le=4_102_444_800, description="Only from then on, seconds since the epoch.")
]
SessionId = Annotated[str, Path(pattern=r"^[A-Za-z0-9._-]{1,64}$", description="A session's id.")]
Name = Annotated[str, Path(min_length=1, max_length=64, description="As the controller names it.")]

_NOT_FOUND: Final[dict[int | str, dict[str, Any]]] = {
    404: {"model": Detail, "description": "There is none of that name."}
}
_NO_HISTORY: Final[dict[int | str, dict[str, Any]]] = {
    503: {"model": Detail, "description": "History is away; steering goes on."}
}


def _only_known_parameters(request: Request) -> None:
    """A misspelt filter must not pass for none."""
    route = request.scope["route"]
    known = [str(p.alias) for p in route.dependant.query_params]
    for name in request.query_params:
        if name not in known:
            allowed = ", ".join(known) or "none"
            raise HTTPException(422, f"query parameter {name!r} is not known here; allowed: {allowed}")


def create_api(view: View) -> FastAPI:
    """The application over what `view` sees."""
    api = FastAPI(
        title="Steerline application station",
        version="1",
        description="Sessions that agents report, what the station thinks of them, and what the controller "
        "decided. Live values come from memory; history comes from the store and may be away (503).",
        dependencies=[Depends(_only_known_parameters)],
    )

    @api.exception_handler(StoreUnavailableError)
    async def _no_history(_: Request, error: StoreUnavailableError) -> JSONResponse:  # pyright: ignore[reportUnusedFunction]
        return JSONResponse({"detail": f"history is not available now: {error}"}, status_code=503)

    @api.get("/health", tags=["station"])
    async def health() -> Health:  # pyright: ignore[reportUnusedFunction]
        """How the station fares. Always 200 while it runs; `status` says whether all is well."""
        return view.health()

    @api.get("/latency", tags=["station"])
    async def latency() -> LatencyReport:  # pyright: ignore[reportUnusedFunction]
        """How quick the network answers to a report."""
        return LatencyReport(
            enforced=LatencyFigures.of(view.desk.news.enforced.percentiles()),
            assessed=LatencyFigures.of(view.steering.assessed.percentiles()),
        )

    @api.get("/sessions", tags=["sessions"], responses=_NO_HISTORY)
    async def sessions(  # pyright: ignore[reportUnusedFunction]
        ended: Annotated[bool, Query(description="Also sessions that have ended, from history.")] = False,
        since: Since = 0,
        limit: Limit = 100,
    ) -> list[SessionRecord]:
        """Live sessions, the latest report first; with `ended` also those of history."""
        return await view.sessions(ended, since, limit)

    @api.get("/sessions/{session_id}", tags=["sessions"], responses=_NOT_FOUND | _NO_HISTORY)
    async def session(  # pyright: ignore[reportUnusedFunction]
        session_id: SessionId, since: Since = 0, limit: Limit = 600
    ) -> SessionWithSeries:
        """One session and the newest of its time series."""
        found = await view.session(session_id, since, limit)
        if found is None:
            raise HTTPException(404, f"no session {session_id!r} now or in history")
        return found

    @api.get("/lines", tags=["lines"])
    async def lines() -> list[LineRecord]:  # pyright: ignore[reportUnusedFunction]
        """The lines as the controller last told of them; empty before it has."""
        return [view.desk.news.lines[key] for key in sorted(view.desk.news.lines)]

    @api.get("/lines/{site}/{line}", tags=["lines"], responses=_NOT_FOUND | _NO_HISTORY)
    async def line(  # pyright: ignore[reportUnusedFunction]
        site: Name, line: Name, since: Since = 0, limit: Limit = 600
    ) -> LineWithSeries:
        """One line and the newest of its time series."""
        state = view.desk.news.lines.get((site, line))
        if state is None:
            raise HTTPException(404, f"no line {line!r} of site {site!r}; the controller told of none")
        return LineWithSeries(line=state, series=await view.store.line_series(site, line, since, limit))

    @api.get("/decisions", tags=["decisions"], responses=_NO_HISTORY)
    async def decisions(  # pyright: ignore[reportUnusedFunction]
        session: Annotated[
            str | None, Query(pattern=r"^[A-Za-z0-9._-]{1,64}$", description="Only of this session.")
        ] = None,
        since: Since = 0,
        limit: Limit = 100,
    ) -> list[DecisionRecord]:
        """The controller's decisions with their reasons, newest first."""
        return await view.store.decisions(session, since, limit)

    return api
