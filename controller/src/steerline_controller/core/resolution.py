"""Which flows of the network are a session's: a session is not a socket.

The agent's five-tuple is not always the one the switches see: most customers sit behind a router
that rewrites address and port, and an agent may not know its port at all, nor (QUIC, whose port
Alt-Svc may change) the server's. Exact five-tuples are taken first; else flows of the same public
address, server address, protocol and, where it is known, server port, preferring those that carry
bytes like media do. What another session named exactly is not taken.
"""

from __future__ import annotations

from collections.abc import Iterable

from steerline_contract.flows import FiveTuple
from steerline_contract.steering import Assessment
from steerline_controller.core.snapshot import Resolution
from steerline_controller.core.state import FlowState, SiteView

# A connection that carried less than this share of what the session consumes is not its media.
MEDIA_SHARE = 0.02
# How long a connection that carried media may pause (a full buffer, a segment's gap).
MEDIA_MEMORY_S = 15.0


def resolve(assessment: Assessment, view: SiteView, now: float) -> tuple[Resolution, tuple[FiveTuple, ...]]:
    """The session's flows that are known at this site, and how they were found."""
    exact: list[FiveTuple] = []
    vague: list[FiveTuple] = []
    for flow in assessment.flows:
        (exact if flow.client_port and flow in view.flows else vague).append(flow)
    if exact:
        return Resolution.EXACT, tuple(exact)
    if not (assessment.translated or any(not flow.client_port for flow in vague)):
        return Resolution.NONE, ()
    found: dict[FiveTuple, FlowState] = {}
    for flow in vague:
        for state in _alike(flow, view):
            if not _taken(state, assessment.session_id, view):
                found[state.flow] = state
    if not found:
        return Resolution.NONE, ()
    return Resolution.TRANSLATED, tuple(_media_like(found.values(), assessment, now))


def _alike(flow: FiveTuple, view: SiteView) -> Iterable[FlowState]:
    return (state for state in view.between(flow.client, flow.server) if fits(flow, state.flow))


def fits(told: FiveTuple, seen: FiveTuple) -> bool:
    """Whether a flow may be the one an agent told of, whatever the client's port: a router may rewrite it."""
    return (
        (told.client, told.server, told.protocol) == (seen.client, seen.server, seen.protocol)
        and told.server_port in (0, seen.server_port)
    )  # fmt: skip


def _taken(state: FlowState, session_id: str, view: SiteView) -> bool:
    """Whether another session knows this flow exactly."""
    other = view.sessions.get(state.session_id)
    return other is not None and other.session_id != session_id and other.resolution is Resolution.EXACT


def _media_like(states: Iterable[FlowState], assessment: Assessment, now: float) -> list[FiveTuple]:
    """Those that carry, or lately carried, a share of what the session consumes; else all."""
    states = list(states)
    threshold = MEDIA_SHARE * max(assessment.play_bps, 100_000)
    carrying = [
        state.flow
        for state in states
        if state.down_bps >= threshold or (now - state.media_at <= MEDIA_MEMORY_S)
    ]
    return carrying or [state.flow for state in states]
