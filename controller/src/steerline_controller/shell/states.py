"""The engine's snapshot as the steering service's message."""

from __future__ import annotations

from steerline.steering.v1 import steering_pb2 as pb
from steerline_contract import wire as words
from steerline_controller.core.snapshot import Snapshot


def state_message(snapshot: Snapshot) -> pb.GetStateResponse:
    """GetStateResponse."""
    return pb.GetStateResponse(
        strategy=snapshot.strategy,
        lines=[words.line_state_message(line) for line in snapshot.lines],
        flows=[
            pb.PlacedFlow(
                site=view.site,
                flow=words.flow_message(view.flow),
                line=view.line,
                session_id=view.session_id,
                down_bps=view.down_bps,
                up_bps=view.up_bps,
                reason=view.reason,
                since_time_s=view.since_s,
            )
            for view in snapshot.flows
        ],
        sessions=[
            pb.SteeredSession(
                session_id=view.session_id,
                site=view.site,
                critical=view.critical,
                protected=view.protected,
                line=view.line,
                pinned=view.pinned,
                resolution=pb.Resolution.ValueType(view.resolution.value),
                buffer_length_ms=view.buffer_length_ms,
                need_bps=view.need_bps,
            )
            for view in snapshot.sessions
        ],
    )
