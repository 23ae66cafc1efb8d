"""From what the programs write to rows."""

from __future__ import annotations

import json
from pathlib import Path

from steerline_testbed.experiment import jsons, measure, series, stage
from steerline_testbed.experiment.clock import Zero
from steerline_testbed.experiment.series import Recording
from steerline_testbed.experiment.tail import Tail

ZERO = Zero(unix_s=1_700_000_000.0, monotonic_s=5000.0)


def test_both_clocks_become_seconds_since_the_start() -> None:
    """A stamp since 1970 and one of CLOCK_MONOTONIC of the same moment are the same time."""
    assert ZERO.relative(1_700_000_012.5) == ZERO.relative(5012.5) == 12.5


def test_the_agents_record_becomes_samples() -> None:
    """Samples, states and segments count; received bytes run on over the segments; flows do not matter."""
    head = {"session_id": "video1-1", "player_state": "PLAYING", "buffer_s": 12.5, "height": 480}
    rows = [
        {
            "time_s": 1_700_000_001.0,
            "kind": "sample",
            **head,
            "position_s": 0.5,
            "stall_count": 1,
            "stall_s": 2.0,
        },
        {"time_s": 1_700_000_002.0, "kind": "segment", **head, "bytes": 1000},
        {"time_s": 1_700_000_003.0, "kind": "segment", **head, "bytes": 500, "height": None},
        {"time_s": 1_700_000_004.0, "kind": "flows", "flows": []},
    ]
    found = series.read_player(rows, 1, ZERO)
    assert [one.time_s for one in found] == [1.0, 2.0, 3.0]
    assert [one.received_bytes for one in found] == [0, 1000, 1500]
    assert (found[0].played_s, found[0].stall_count, found[0].stall_s) == (0.5, 1, 2.0)
    assert found[2].height == 0


def test_the_generators_record_becomes_lives_and_counts() -> None:
    """Starts and ends make lives; each second's counts make samples."""
    rows = [
        {"time_s": 5060.0, "kind": "start", "download": 1, "local_port": 4000},
        {"time_s": 5061.0, "kind": "bytes", "bytes": {"1": 100}},
        {"time_s": 5062.0, "kind": "end", "download": 1, "bytes": 150, "reason": "reset"},
    ]
    recording = Recording()
    series.read_downloads(rows, ZERO, recording)
    assert recording.lives[1] == series.DownloadLife(1, 60.0, 62.0, "reset")
    assert [(one.time_s, one.bytes) for one in recording.downloads] == [(61.0, 100), (62.0, 150)]


def test_the_controllers_record_becomes_decisions() -> None:
    """Flows become text; what is not a decision (an advice) is left out."""
    flow = {
        "protocol": 6, "client_address": "198.18.1.11", "client_port": 4000,
        "server_address": "198.19.0.1", "server_port": 80,
    }  # fmt: skip
    rows = [
        {"type": "decision", "time_s": 1_700_000_080.0, "kind": "STEER", "flow": flow, "to_line": "line2",
         "session_id": "v", "reason": "14 s left", "site": "home", "from_line": "line1", "strategy": "s"},
        {"type": "advice", "time_s": 1_700_000_081.0, "session_id": "v", "sustainable_bps": 1},
    ]  # fmt: skip
    (found,) = series.read_decisions(rows, ZERO)
    assert (found.time_s, found.kind, found.to_line) == (80.0, "steer", "line2")
    assert found.flow == "tcp 198.18.1.11:4000 - 198.19.0.1:80"


def test_a_torn_last_line_and_rubbish_are_left_out(tmp_path: Path) -> None:
    """A program that died while it wrote costs its last line only; a missing file is an empty one."""
    path = tmp_path / "record.jsonl"
    path.write_bytes(b'{"a": 1}\nnot json\n[1]\n{"a": 2}\n{"a": 3')
    assert [row["a"] for row in jsons.json_lines(path)] == [1, 2]
    assert list(jsons.json_lines(tmp_path / "missing.jsonl")) == []


def test_a_tail_reads_everything_once(tmp_path: Path) -> None:
    """A line that is half there is read when it is whole."""
    path = tmp_path / "record.jsonl"
    tail = Tail(path)
    assert tail.read() == []
    path.write_text('{"a": 1}\n{"a"')
    assert tail.read() == [{"a": 1}]
    with path.open("a") as file:
        file.write(": 2}\n")
    assert tail.read() == [{"a": 2}]
    assert tail.read() == []


def test_congestion_control_is_read_from_what_ss_shows() -> None:
    """The word after the two addresses, counted per connection."""
    text = (
        "0 1448 198.19.0.2:80 198.18.1.101:40000 cubic wscale:7,7 rto:204 cwnd:10\n"
        "0 0    198.19.0.2:80 198.18.1.101:40002 bbr wscale:7,7 rto:204\n"
    )
    assert stage.parse_congestion_control(text) == {"cubic": 1, "bbr": 1}


def test_retransmissions_are_read_from_the_kernels_table() -> None:
    """The column is found by its name."""
    text = "Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens RetransSegs\nTcp: 200 3 17\n"
    assert stage.parse_retransmitted(text) == 17
    assert stage.parse_retransmitted("") == 0


def test_the_tear_down_is_no_part_of_the_run(tmp_path: Path) -> None:
    """What is recorded after the end, players that quit for example, is left out."""
    head = {"kind": "sample", "buffer_s": 1.0}
    (tmp_path / "player1.jsonl").write_text(
        json.dumps({"time_s": 1_700_000_009.0, "player_state": "PLAYING", **head})
        + "\n"
        + json.dumps({"time_s": 1_700_000_010.4, "player_state": "QUIT", **head})
        + "\n"
    )
    recording = Recording()
    measure.read_records(tmp_path, 1, ZERO, 10.0, recording)
    assert [one.state for one in recording.samples] == ["PLAYING"]
