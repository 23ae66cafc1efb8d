"""Pages for browsers: a plain one, and one that lies; and what its reports must be."""

from __future__ import annotations

from steerline.flow.v1 import flow_pb2
from steerline.report.v1 import report_pb2
from tests.agent.station import Station

from .browser import Pages

PLAIN = """<!doctype html><title>page</title><video src="/film.mp4" autoplay></video>"""
# Beside its film, a player that another site has put there.
FRAMED = f"""{PLAIN}
<iframe src="http://127.0.0.9:47009/" allow="fullscreen" width="400" height="260"></iframe>"""
PAGE = """<!doctype html><title>page</title><iframe src="/frame.html" width="400" height="260"></iframe>"""
# Late, in a shadow root of a frame; among 500 others; and the page tells nonsense of its players.
FRAME = """<!doctype html><title>frame</title><body><script>
for (const name of ["buffered", "currentTime", "duration", "paused"]) {
  Object.defineProperty(HTMLMediaElement.prototype, name, { get: () => 1e9 });
}
for (let i = 0; i < 500; i += 1) document.body.append(document.createElement("video"));
setTimeout(() => {
  const host = document.createElement("div");
  document.body.prepend(host);
  const video = document.createElement("video");
  video.src = "/film.mp4";
  host.attachShadow({ mode: "open" }).append(video);
  video.play();
  setInterval(() => { for (let i = 0; i < 300; i += 1) video.dispatchEvent(new Event("waiting")); }, 100);
  globalThis.film = video;
}, 1500);
</script>"""


def playing(station: Station) -> list[report_pb2.PlaybackReport]:
    """The reports of play that name a connection."""
    return [
        report
        for report in station.reports
        if report.player_state == flow_pb2.PLAYER_STATE_PLAYING and report.flows
    ]


def check_truth(station: Station, pages: Pages) -> None:
    """One session; its buffer, remaining media, stalls and connections are those of the film."""
    assert len({report.session_id for report in station.reports}) == 1
    reports = playing(station)
    for report in reports:
        assert 0 < report.buffer_length_ms <= report.remaining_media_ms <= 60_100
        assert {(flow.client_address, flow.client_port) for flow in report.flows} <= set(pages.peers)
        assert {flow.server_port for flow in report.flows} == {pages.port}
    assert reports[-1].remaining_media_ms < reports[0].remaining_media_ms
    assert reports[-1].stall_count == 0
