"""What the routes look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from steerline_appstation.clock import Clock
from steerline_appstation.errors import StoreUnavailableError
from steerline_appstation.rest.models import ControllerHealth, Health, HistoryHealth, SessionWithSeries
from steerline_appstation.shell.desk import Desk
from steerline_appstation.shell.report_server import ReportServer
from steerline_appstation.shell.steering_client import SteeringClient
from steerline_appstation.store.base import Store
from steerline_appstation.store.records import SessionRecord
from steerline_appstation.store.writer import Writer


@dataclass(frozen=True, slots=True)
class View:
    """The running parts of a station, for reading only."""

    desk: Desk
    reports: ReportServer
    steering: SteeringClient
    store: Store
    writers: Mapping[str, Writer]
    clock: Clock
    started_s: float

    def health(self) -> Health:
        """How all parts fare."""
        history = {name: HistoryHealth.of(writer.state) for name, writer in self.writers.items()}
        well = self.steering.connected and all(h.ok for h in history.values())
        listings = self.desk.listings.values()
        return Health(
            status="ok" if well else "degraded",
            uptime_s=round(self.clock.monotonic_ns() / 1e9 - self.started_s, 3),
            live_sessions=len(listings),
            critical_sessions=sum(1 for x in listings if x.assessment and x.assessment.critical),
            agent_streams=self.reports.stream_count,
            rejected_reports=self.desk.rejected_count,
            controller=ControllerHealth(
                address=self.steering.target, connected=self.steering.connected, since_s=self.steering.since_s
            ),
            history=history,
        )

    async def sessions(self, ended: bool, since_s: float, limit: int) -> list[SessionRecord]:
        """The latest report first. What lives is taken from memory."""
        wanted = sorted(
            (x for x in self.desk.listings.values() if x.last_seen_s >= since_s),
            key=lambda x: -x.last_seen_s,
        )
        found = {x.report.session_id: x.record() for x in wanted[:limit]}
        if ended:
            for record in await self.store.sessions(since_s, limit):
                found.setdefault(record.session_id, record)
        return sorted(found.values(), key=lambda s: -s.last_seen_s)[:limit]

    async def session(self, session_id: str, since_s: float, limit: int) -> SessionWithSeries | None:
        """A live session is shown even while history is away."""
        listing = self.desk.listings.get(session_id)
        if listing is None:
            record = await self.store.session(session_id)
            if record is None:
                return None
            series = await self.store.series(session_id, since_s, limit)
            return SessionWithSeries(session=record, series=series, series_problem="")
        try:
            series, problem = await self.store.series(session_id, since_s, limit), ""
        except StoreUnavailableError as error:
            series, problem = [], str(error)
        return SessionWithSeries(session=listing.record(), series=series, series_problem=problem)
