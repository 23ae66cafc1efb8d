"""A body of reports goes to the desk, and what there is to say of its sessions comes back.

Awaits nothing: everything of one body happens at once.
"""

from __future__ import annotations

from steerline_appstation.clock import Clock
from steerline_appstation.core.station import Rejected, RejectionReason
from steerline_appstation.shell.desk import Desk
from steerline_appstation.shell.outbox import Letterbox
from steerline_appstation.web import news
from steerline_appstation.web.models import MAX_MESSAGES, News, WebResponse
from steerline_appstation.web.reading import report_of, reports_of, session_id_of
from steerline_contract.errors import ForeignAddressError
from steerline_contract.flows import IPAddress
from steerline_contract.playback import PlaybackReport


class Intake:
    """Takes what extensions post."""

    def __init__(self, desk: Desk, clock: Clock) -> None:
        self._desk = desk
        self._clock = clock

    def admit(self, peer: IPAddress, size_bytes: int) -> Rejected | None:
        """Counts one body, right or wrong, as its first report. A rejection where it is too much."""
        rejected = self._desk.admit(peer, self._clock.monotonic_ns(), size_bytes)
        if rejected is not None:
            self._desk.count_rejected(rejected, peer)
        return rejected

    def take(self, body: bytes, peer: IPAddress) -> WebResponse:
        """Takes a body that was admitted. Raises InvalidValueError where it is no list of reports."""
        received_ns = self._clock.monotonic_ns()
        rejections: list[News] = []
        boxes: dict[str, Letterbox] = {}
        for number, value in enumerate(reports_of(body)):
            outcome = self._report(value, number == 0, received_ns, peer)
            if isinstance(outcome, Rejected):
                self._desk.count_rejected(outcome, peer)
                rejections.append(news.rejection(outcome, session_id_of(value)))
            else:
                boxes[outcome[0]] = outcome[1]
        told = [said for box in boxes.values() for response in box.take() if (said := news.of(response))]
        # What is newest matters most; a client that asks for 64 sessions at once loses the rest.
        return WebResponse(messages=rejections + told[max(0, len(rejections) + len(told) - MAX_MESSAGES) :])

    def _report(
        self, value: object, counted: bool, received_ns: int, peer: IPAddress
    ) -> tuple[str, Letterbox] | Rejected:
        if not counted:
            too_much = self._desk.admit(peer, received_ns)
            if too_much is not None:
                return too_much
        report = report_of(value)
        if isinstance(report, Rejected):
            return report
        box = self._desk.letterbox(report.session_id)
        if box is None:
            return _spoken_for(report)
        return self._desk.take(report, received_ns, peer, box) or (report.session_id, box)


def _spoken_for(report: PlaybackReport) -> Rejected:
    error = ForeignAddressError(
        "session_id", report.session_id, "a session of your own; an agent's stream speaks for this one"
    )
    return Rejected(RejectionReason.FOREIGN, error.field, str(error))
