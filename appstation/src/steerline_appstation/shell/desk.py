"""Where reports arrive and answers leave: the core in the middle, streams and history around it.

Everything here runs on the one event loop and awaits nothing. What must be quick (the assessment to
the controller) comes first; what is history is only queued.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final, Protocol

import structlog
from google.protobuf.message import DecodeError

from steerline.report.v1 import report_pb2
from steerline_appstation.clock import Clock
from steerline_appstation.core.limits import BYTES_OF_A_REPORT
from steerline_appstation.core.policy import Policy
from steerline_appstation.core.station import (
    Accepted,
    History,
    Rejected,
    RejectionReason,
    SessionEnded,
    Station,
)
from steerline_appstation.shell import replies
from steerline_appstation.shell.controller_news import ControllerNews
from steerline_appstation.shell.directory import Listing
from steerline_appstation.shell.outbox import Letterbox, Outbox
from steerline_appstation.store.records import Sample
from steerline_appstation.store.writer import Writer
from steerline_contract import wire
from steerline_contract.errors import InvalidValueError
from steerline_contract.flows import IPAddress
from steerline_contract.playback import PlaybackReport
from steerline_contract.steering import Assessment

# An agent hears of its assessment at each change of `critical`, and at least this often.
ASSESSMENT_EVERY_S: Final = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class Received:
    """One message as it arrived, not looked at yet."""

    monotonic_ns: int
    data: bytes


class AssessmentSink(Protocol):
    """Where assessments go."""

    def offer(self, assessment: Assessment) -> None:
        """Takes one; never waits, never fails."""
        ...


class Desk:
    """Takes messages of agents, and the controller's answers to them."""

    def __init__(
        self, policy: Policy, clock: Clock, steering: AssessmentSink, writers: Sequence[Writer]
    ) -> None:
        self._station = Station(policy)
        self._clock = clock
        self._steering = steering
        self._writers = writers
        self._outboxes: dict[str, Outbox | Letterbox] = {}
        self._log = structlog.get_logger()
        self.listings: dict[str, Listing] = {}
        self.news = ControllerNews(clock, writers, self._outboxes)
        self.rejected_count = 0

    def receive(self, received: Received, peer: IPAddress, outbox: Outbox) -> bool:
        """Takes one message; answers go to `outbox`. False: this address sends too much."""
        too_much = self.admit(peer, received.monotonic_ns, len(received.data))
        if too_much is not None:
            # What is too large to be a report is not worth the time to find its session id.
            small = len(received.data) <= BYTES_OF_A_REPORT
            self._reject(too_much, _parsed(received.data) if small else None, peer, outbox)
            return False
        message = _parsed(received.data)
        try:
            if message is None:
                raise InvalidValueError(
                    "report", "not there or not readable", "a ReportRequest with a report"
                )
            report = wire.playback_report(message)
        except InvalidValueError as error:
            invalid = Rejected(RejectionReason.INVALID, error.field, str(error))
            self._reject(invalid, message, peer, outbox)
            return True
        rejected = self.take(report, received.monotonic_ns, peer, outbox)
        if rejected is not None:
            self._reject(rejected, message, peer, outbox)
        return True

    def admit(self, peer: IPAddress, now_ns: int, size_bytes: int = 0) -> Rejected | None:
        """Counts one message of this address, right or wrong. A rejection where it has sent too much."""
        return self._station.admit(peer, now_ns / 1e9, size_bytes)

    def take(
        self, report: PlaybackReport, received_ns: int, peer: IPAddress, outbox: Outbox | Letterbox
    ) -> Rejected | None:
        """Takes one report that was admitted and read. Returns why it does not count, else None."""
        outcome = self._station.report(report, peer, received_ns / 1e9)
        match outcome:
            case Accepted():
                self._accepted(outcome, report, received_ns, peer, outbox)
            case History():
                outbox.put(replies.acknowledgement(report.session_id, report.sequence_number))
                self._note(report, None, peer)
            case Rejected():
                return outcome
        return None

    def letterbox(self, session_id: str) -> Letterbox | None:
        """Where a session's news wait for a client without a stream; None: an open stream speaks for it."""
        box = self._outboxes.get(session_id)
        if box is None:
            return Letterbox()
        return box if isinstance(box, Letterbox) else None

    def count_rejected(self, rejected: Rejected, peer: IPAddress) -> None:
        """Remembers that a report did not count."""
        self.rejected_count += 1
        self._log.debug("report-rejected", peer=str(peer), field=rejected.field, message=rejected.message)

    def expire(self) -> None:
        """Ends sessions that fell silent. Their protection ended with its time to live."""
        for ended in self._station.expire(self._clock.monotonic_ns() / 1e9):
            self._ended(ended)

    def current(self) -> list[Assessment]:
        """The last assessment of each live session, for a controller that just came."""
        return list(self._station.assessments())

    def hang_up(self, outbox: Outbox) -> None:
        """An agent's stream ended. Its sessions live on until they are silent for too long."""
        for session_id in [s for s, o in self._outboxes.items() if o is outbox]:
            del self._outboxes[session_id]

    def _accepted(
        self,
        outcome: Accepted,
        report: PlaybackReport,
        received_ns: int,
        peer: IPAddress,
        outbox: Outbox | Letterbox,
    ) -> None:
        assessment = dataclasses.replace(outcome.assessment, received_monotonic_ns=received_ns)
        self._steering.offer(assessment)
        self._outboxes[report.session_id] = outbox
        outbox.put(replies.acknowledgement(report.session_id, report.sequence_number))
        listing = self._note(report, assessment, peer)
        since_s = listing.last_seen_s - listing.assessed_sent_s
        if outcome.changed or outcome.opened or not 0 <= since_s < ASSESSMENT_EVERY_S:
            listing.assessed_sent_s = listing.last_seen_s
            outbox.put(replies.assessment(assessment))
        if outcome.changed:
            self._log.info(
                "critical" if assessment.critical else "no-longer-critical",
                session=report.session_id,
                reason=assessment.reason,
            )
        if outcome.ended is not None:
            self._ended(outcome.ended)

    def _note(self, report: PlaybackReport, assessment: Assessment | None, peer: IPAddress) -> Listing:
        """Keeps what REST shows, and queues history."""
        time_s = self._clock.unix_s()
        session_id = report.session_id
        listing = self.listings.get(session_id)
        if listing is None:
            listing = self.listings[session_id] = Listing(peer, time_s, time_s, report)
            self._log.info("session-opened", session=session_id, peer=str(peer), player=report.player_name)
        sampled_s = time_s if assessment is not None else listing.time_of(report, time_s)
        listing.last_seen_s = time_s
        listing.report_count += 1
        if assessment is not None:
            listing.report = report
            listing.reported_s = time_s
            listing.assessment = assessment
            listing.target_s = self._station.target_s(session_id) or listing.target_s
        for writer in self._writers:
            writer.put(
                ("sample", session_id, report.sequence_number, sampled_s),
                lambda: Sample.of(sampled_s, report, assessment),
            )
            writer.put(("session", session_id), listing.record)
        return listing

    def _ended(self, ended: SessionEnded) -> None:
        self._outboxes.pop(ended.session_id, None)
        listing = self.listings.pop(ended.session_id)
        listing.live = False
        listing.ended_reason = ended.reason
        for writer in self._writers:
            writer.put(("session", ended.session_id), listing.record)
        self._log.info("session-ended", session=ended.session_id, reason=ended.reason)

    def _reject(
        self, rejected: Rejected, message: report_pb2.PlaybackReport | None, peer: IPAddress, outbox: Outbox
    ) -> None:
        self.count_rejected(rejected, peer)
        session_id, sequence_number = "", 0
        if message is not None:
            session_id, sequence_number = message.session_id, message.sequence_number
        outbox.put(replies.rejection(rejected, session_id, sequence_number))


def _parsed(data: bytes) -> report_pb2.PlaybackReport | None:
    """The report in a message; None where there is none, or the bytes are no message."""
    try:
        request = report_pb2.ReportRequest.FromString(data)
    except DecodeError:
        return None
    return request.report if request.HasField("report") else None
