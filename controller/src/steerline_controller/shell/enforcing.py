"""From an assessment to the switches' word that its effects are in place."""

from __future__ import annotations

from dataclasses import dataclass

from steerline_contract.steering import Assessment, Enforced
from steerline_controller.shell.inputs import Channel
from steerline_controller.shell.switch import Switch


@dataclass(slots=True)
class _Waiting:
    assessment: Assessment
    moved: int
    barriers: set[tuple[int, int]]  # connection, transaction id


class Enforcing:
    """The assessments whose barriers are not all answered yet."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []

    def expect(self, assessment: Assessment, moved: int, switches: list[Switch]) -> None:
        """Sends a barrier to each switch that was told something."""
        barriers = {(id(switch.channel), switch.barrier()) for switch in switches}
        if barriers:
            self._waiting.append(_Waiting(assessment, moved, barriers))

    def answered(self, channel: Channel, xid: int, at_ns: int) -> Enforced | None:
        """One barrier's answer; the confirmation, when it was the last one."""
        key = (id(channel), xid)
        for waiting in self._waiting:
            if key in waiting.barriers:
                waiting.barriers.remove(key)
                if waiting.barriers:
                    return None
                self._waiting.remove(waiting)
                said = waiting.assessment
                return Enforced(said.session_id, said.received_monotonic_ns, at_ns, waiting.moved)
        return None

    def lost(self, channel: Channel) -> None:
        """A switch is gone: what waits for it is never confirmed."""
        gone = id(channel)
        self._waiting = [w for w in self._waiting if all(connection != gone for connection, _ in w.barriers)]
