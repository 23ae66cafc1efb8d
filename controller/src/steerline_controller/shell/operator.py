"""Operators' wishes: what they name is looked up, and an error says what exists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from steerline_contract.errors import InvalidValueError
from steerline_contract.steering import Decision
from steerline_controller.core.effects import Announce, Effect
from steerline_controller.core.events import DrainLine, Event, PinSession, SteerSession
from steerline_controller.core.snapshot import Snapshot
from steerline_controller.shell.inputs import Asked, OperatorEvent, UnknownNameError, UnusableNameError

_SHOWN = 20


def answer(
    asked: Asked,
    snapshot: Snapshot,
    lines: Mapping[str, list[str]],
    decide: Callable[[Event], list[Effect]],
) -> None:
    """Checks the names, lets the engine decide, and answers with the decisions or the error."""
    try:
        _check(asked.event, snapshot, lines)
        effects = decide(asked.event)
    except (UnknownNameError, UnusableNameError, InvalidValueError) as error:
        asked.answer.set_exception(error)
        return
    asked.answer.set_result(
        tuple(e.message for e in effects if isinstance(e, Announce) and isinstance(e.message, Decision))
    )


def _list(names: Iterable[str]) -> str:
    names = sorted(names)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(names[:_SHOWN]) or "(none)") + more


def _check(event: OperatorEvent, snapshot: Snapshot, lines: Mapping[str, list[str]]) -> None:
    if isinstance(event, DrainLine):
        if event.site not in lines:
            raise UnknownNameError(f"site {event.site!r} does not exist; there are: {_list(lines)}")
        _check_line(event.line, event.site, lines)
        return
    session = next((s for s in snapshot.sessions if s.session_id == event.session_id), None)
    if session is None:
        known = _list(s.session_id for s in snapshot.sessions)
        raise UnknownNameError(f"session {event.session_id!r} is not known; there are: {known}")
    if isinstance(event, SteerSession | PinSession):
        _check_line(event.line, session.site, lines)


def _check_line(line: str, site: str, lines: Mapping[str, list[str]]) -> None:
    there = lines[site] if site in lines else sorted({name for names in lines.values() for name in names})
    if line not in there:
        where = f" of site {site!r}" if site in lines else ""
        raise UnknownNameError(f"line {line!r}{where} does not exist; there are: {_list(there)}")
