"""What the controller says: to the agents it concerns, to history, and to whoever asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog

from steerline.steering.v1 import steering_pb2
from steerline_appstation.clock import Clock
from steerline_appstation.shell import replies
from steerline_appstation.shell.latency import Latency
from steerline_appstation.shell.outbox import Letterbox, Outbox
from steerline_appstation.store.records import DecisionRecord, LatencyRecord, LineRecord
from steerline_appstation.store.writer import Writer
from steerline_contract import wire
from steerline_contract.errors import InvalidValueError
from steerline_contract.steering import Decision, Enforced


class ControllerNews:
    """Takes the controller's messages. A wrong one is logged and dropped; the stream goes on."""

    def __init__(
        self, clock: Clock, writers: Sequence[Writer], outboxes: Mapping[str, Outbox | Letterbox]
    ) -> None:
        self._clock = clock
        self._writers = writers
        self._outboxes = outboxes
        self._log = structlog.get_logger()
        self._decision_number = 0
        self.lines: dict[tuple[str, str], LineRecord] = {}
        self.enforced = Latency()

    def take(self, message: steering_pb2.ConnectResponse) -> None:
        """Takes one message of the steering stream."""
        try:
            match message.WhichOneof("message"):
                case "decision":
                    self._decision(wire.decision(message.decision))
                case "advice":
                    self._to_agent(message.advice.session_id, replies.advice(wire.advice(message.advice)))
                case "line_state":
                    record = LineRecord.of(self._clock.unix_s(), wire.line_state(message.line_state))
                    self.lines[record.site, record.line] = record
                    self._write(("line", record.site, record.line, record.time_s), record)
                case "enforced":
                    self._enforced(wire.enforced(message.enforced))
                case None:
                    self._log.debug("controller-said-nothing")
        except InvalidValueError as error:
            self._log.warning("controller-said-something-wrong", field=error.field, message=str(error))

    def _decision(self, decision: Decision) -> None:
        self._decision_number += 1
        record = DecisionRecord.of(self._decision_number, decision)
        self._write(("decision", self._decision_number), record)
        if decision.session_id:
            self._to_agent(decision.session_id, replies.decision(decision))

    def _enforced(self, enforced: Enforced) -> None:
        if not enforced.received_monotonic_ns:
            return
        latency_ms = (enforced.enforced_monotonic_ns - enforced.received_monotonic_ns) / 1e6
        if not self.enforced.add(latency_ms):
            self._log.debug("latency-makes-no-sense", latency_ms=latency_ms)
            return
        record = LatencyRecord(
            time_s=self._clock.unix_s(),
            session_id=enforced.session_id,
            latency_ms=latency_ms,
            moved_flow_count=enforced.moved_flow_count,
        )
        self._write(("latency", enforced.session_id, enforced.received_monotonic_ns), record)

    def _to_agent(self, session_id: str, response: replies.Response) -> None:
        outbox = self._outboxes.get(session_id)
        if outbox is not None:
            outbox.put(response)

    def _write(self, key: tuple[object, ...], record: DecisionRecord | LineRecord | LatencyRecord) -> None:
        for writer in self._writers:
            writer.put(key, lambda: record)
