"""What a run may be asked to be, and what is said to a wrong wish."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from steerline_testbed.experiment import cli, options
from steerline_testbed.experiment.errors import ExperimentError
from steerline_testbed.experiment.settings import RunSettings, parse_overrides


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("flows", -1), ("flows", 10**9), ("videos", 51), ("duration_s", 0), ("duration_s", 10_000),
        ("duration_s", float("nan")), ("seed", -1), ("strategy", "../x"), ("best_effort", "both"),
        ("rule", "maybe"), ("congestion_control", "cubic; rm"), ("line_mbps", ()), ("line_mbps", (0.0,)),
        ("mode", "proactively"), ("player", "vlc"), ("overrides", {"nobody.x": 1}), ("unknown", 1),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named(name: str, value: object) -> None:
    """Before anything is built."""
    with pytest.raises(ExperimentError, match=name):
        RunSettings.parse({name: value})


def test_traffic_after_the_end_is_refused() -> None:
    """Downloads that would never start are a mistake, and are said to be one."""
    with pytest.raises(ExperimentError, match="below the duration"):
        RunSettings.parse({"duration_s": 60.0, "traffic_start_s": 60.0})


def test_the_topology_follows_the_settings() -> None:
    """Unequal lines, NAT and congestion control arrive in the network."""
    topology = RunSettings.parse({"line_mbps": [20, 10], "nat": True, "congestion_control": "bbr"}).topology()
    assert [line.capacity_bps for line in topology.lines] == [20_000_000, 10_000_000]
    assert topology.nat and topology.congestion_control == "bbr"


def test_viewers_behind_nat_live_in_the_household() -> None:
    """With NAT players run in home1, home2 ..., else in viewer1, viewer2 ..."""
    assert RunSettings.parse({"videos": 2, "nat": True}).viewers == ["home1", "home2"]
    assert RunSettings.parse({"videos": 2}).viewers == ["viewer1", "viewer2"]


def test_overrides_are_toml_values_of_a_part() -> None:
    """Numbers are numbers, bare words are texts, and each goes to its part."""
    found = parse_overrides(
        ["controller.damping_s=5", "agent.goal=30", "station.low_s = 15.5", "agent.seed=x"]
    )
    settings = RunSettings.parse({"overrides": found})
    assert settings.overrides_of("controller") == {"damping_s": 5}
    assert settings.overrides_of("station") == {"low_s": 15.5}
    assert settings.overrides_of("agent") == {"goal": 30, "seed": "x"}
    with pytest.raises(ExperimentError, match=r"part\.key=value"):
        parse_overrides(["damping"])


@pytest.mark.parametrize(
    ("count", "text", "rates"),
    [(None, "10", (10.0,) * 5), (3, "5", (5.0,) * 3), (None, "20,10", (20.0, 10.0))],
)
def test_lines_by_count_or_by_rate(count: int | None, text: str, rates: tuple[float, ...]) -> None:
    """One rate for some lines, or a rate for each."""
    assert options.lines_of(count, text) == rates


@pytest.mark.parametrize(("count", "text"), [(3, "20,10"), (None, "fast"), (0, "10")])
def test_lines_that_contradict_themselves_are_refused(count: int | None, text: str) -> None:
    """The error names the option."""
    with pytest.raises(ExperimentError, match="--line"):
        options.lines_of(count, text)


def parsed(*arguments: str) -> argparse.Namespace:
    """The options of a command line."""
    parser = argparse.ArgumentParser()
    cli.register(parser.add_subparsers())
    return parser.parse_args(arguments)


def test_the_options_default_to_the_settings_defaults() -> None:
    """`run --out X` is a run with every default."""
    assert options.settings_of(parsed("run", "--out", "x")) == RunSettings()


def test_every_option_reaches_its_setting() -> None:
    """No option is lost on the way."""
    wanted: dict[str, Any] = {
        "strategy": "single", "videos": 2, "flows": 3, "duration_s": 100.0, "seed": 4, "traffic_start_s": 5.0,
        "traffic_interval_s": 0.5, "browsers": 0, "nat": True, "best_effort": "single", "rule": "off",
        "congestion_control": "bbr", "line_mbps": (6.0, 7.0), "mode": "reactive-with-fallback",
        "station_side": "B", "overrides": {"controller.damping_s": 1},
    }  # fmt: skip
    given = parsed(
        "run", "--out", "x", "--strategy", "single", "--videos", "2", "--flows", "3", "--duration", "100",
        "--seed", "4", "--traffic-start", "5", "--traffic-interval", "0.5", "--browsers", "0", "--nat",
        "--best-effort", "single", "--rule", "off", "--congestion-control", "bbr", "--line-mbps", "6,7",
        "--mode", "reactive-with-fallback", "--station-side", "B", "--set", "controller.damping_s=1",
    )  # fmt: skip
    assert options.settings_of(given) == RunSettings.parse(wanted)


def test_resume_keeps_a_complete_run(tmp_path: Path) -> None:
    """It ends at once, successfully, and builds nothing."""
    (tmp_path / "summary.json").write_text('{"state": "complete"}')
    options = parsed("run", "--out", str(tmp_path), "--resume")
    assert options.command(options) == 0


def test_a_complete_run_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    """The error says what one can do."""
    (tmp_path / "summary.json").write_text('{"state": "complete"}')
    options = parsed("run", "--out", str(tmp_path))
    with pytest.raises(ExperimentError, match="--force"):
        options.command(options)
