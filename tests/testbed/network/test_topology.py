"""A topology is born valid or refused with the thing and the allowed range."""

from __future__ import annotations

from pathlib import Path

import pytest

from steerline_testbed.network import TestbedError, Topology

SHIPPED = Path(__file__).parents[3] / "deploy" / "topologies"


def test_default_is_the_sources_network() -> None:
    """Five lines of 10 Mbit/s, one viewer, cubic."""
    topology = Topology.default()
    assert [line.name for line in topology.lines] == ["line1", "line2", "line3", "line4", "line5"]
    assert topology.capacity_bps == 50_000_000
    assert (topology.viewers, topology.nat, topology.congestion_control) == (1, False, "cubic")
    assert topology.lines[0].queue_bytes == 151_400


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_topologies_are_valid(path: Path) -> None:
    """Every file that is shipped loads."""
    assert Topology.load(path).lines


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"line": []}, ["line", "at least 1"]),
        ({"line": [{"name": "line1", "capacity_bps": 99_999}]}, ["line.0.capacity_bps", "99999", "100000"]),
        ({"line": [{"name": "line1", "capacity_bps": 2 * 10**9}]}, ["capacity_bps", "1000000000"]),
        ({"line": [{"name": "line1", "loss": 0.6}]}, ["line.0.loss", "0.6", "0.5"]),
        ({"line": [{"name": "line1", "loss": float("nan")}]}, ["line.0.loss"]),
        ({"line": [{"name": "line1", "delay_ms": -1}]}, ["line.0.delay_ms", "-1"]),
        ({"line": [{"name": "line1", "delay_ms": 5, "jitter_ms": 6}]}, ["jitter_ms 6", "delay_ms 5"]),
        ({"line": [{"name": "line1", "queue_packets": 1}]}, ["queue_packets", "2"]),
        ({"line": [{"name": "Line 1"}]}, ["line.0.name", "lower-case"]),
        ({"line": [{"name": "viewer1"}]}, ["line.0.name", "host"]),
        ({"line": [{"name": "line1"}, {"name": "line1"}]}, ["line1", "differ"]),
        ({"line": [{"name": "line1", "speed": 1}]}, ["line.0.speed"]),
        ({"line": [{"name": "line1"}], "viewer": 3}, ["viewer", "3"]),
        ({"line": [{"name": "line1"}], "viewers": 65}, ["viewers", "65", "64"]),
        ({"line": [{"name": "line1"}], "station_side": "C"}, ["station_side", "'C'", "'A' or 'B'"]),
        ({"line": [{"name": "line1"}], "congestion_control": "cubic; reboot"}, ["congestion_control"]),
    ],
)
def test_wrong_values_are_named(values: dict[str, object], named: list[str]) -> None:
    """The message names the key, the value and what is allowed."""
    with pytest.raises(TestbedError) as caught:
        Topology.parse(values, "topology x")
    for part in ["topology x", *named]:
        assert part in str(caught.value)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    """A file that is missing, not text or not TOML is an error that names it."""
    broken = tmp_path / "broken.toml"
    for content in (b"[[line]", b"\xff\xfe\x00"):
        broken.write_bytes(content)
        with pytest.raises(TestbedError, match=r"broken\.toml"):
            Topology.load(broken)
    with pytest.raises(TestbedError, match=r"absent\.toml"):
        Topology.load(tmp_path / "absent.toml")


@pytest.mark.parametrize("lines", [0, 33, -1])
def test_number_of_lines_has_a_range(lines: int) -> None:
    """Lines are 1 to 32."""
    with pytest.raises(TestbedError, match="1 to 32"):
        Topology.default(lines=lines)
