"""Measured against asked for: what passes, and what is named."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerline_testbed.network import LineSpec, Topology, WrongNetworkError
from steerline_testbed.network.verdict import (
    CheckReport,
    Measurements,
    RateMeasurement,
    SwitchAccount,
    problems,
)

TOPOLOGY = Topology.default(lines=2)
GOOD = RateMeasurement(rate_bps=10e6, offered_bps=12.5e6, entered=700, dropped=50, left=650)
RIGHT = Measurements(
    rates={"line1": {"down": GOOD, "up": GOOD}, "line2": {"down": GOOD, "up": GOOD}},
    rtt_ms={"line1": 0.7, "line2": 0.8},
    switches={"down": SwitchAccount(1400, 1400, 1300, 1300), "up": SwitchAccount(1400, 1400, 1300, 1300)},
    leaks=(),
    strangers=(),
    congestion_control={"viewer1": ("cubic",)},
)


def with_rate(rate: RateMeasurement) -> Measurements:
    """The right network, but for line2 downwards."""
    return replace(RIGHT, rates={**RIGHT.rates, "line2": {"down": rate, "up": GOOD}})


def test_the_right_network_passes() -> None:
    """Nothing is found in a network as asked for, and its report is JSON."""
    report = CheckReport(TOPOLOGY, RIGHT, 2.0, 1, problems(TOPOLOGY, RIGHT))
    assert report.passed
    report.require()
    assert json.loads(json.dumps(report.as_dict()))["lines"]["line1"]["down_bps"] == 10_000_000


@given(st.floats(0, 20e6))
def test_rates_within_two_percent_pass(rate_bps: float) -> None:
    """A line passes exactly when it lets out 98 % to 102 % of its rate."""
    found = problems(TOPOLOGY, with_rate(replace(GOOD, rate_bps=rate_bps)))
    assert bool(found) != (9.8e6 <= rate_bps <= 10.2e6)
    assert all("line2 down" in problem and "9.800" in problem for problem in found)


@pytest.mark.parametrize(
    ("measured", "named"),
    [
        (replace(RIGHT, rtt_ms={"line1": 0.7, "line2": None}), ["line2", "nothing comes back"]),
        (replace(RIGHT, rtt_ms={"line1": 2.4, "line2": 0.8}), ["line1", "2.40 ms", "0 to 2 ms"]),
        (replace(RIGHT, leaks=("b-internet",)), ["b-internet", "no rule"]),
        (replace(RIGHT, strangers=("sl-x-viewer1/eth9",)), ["sl-x-viewer1/eth9"]),
        (replace(RIGHT, congestion_control={"viewer1": ("bbr",)}), ["viewer1", "bbr", "cubic"]),
        (replace(RIGHT, congestion_control={"viewer1": ()}), ["viewer1", "nothing"]),
        (with_rate(replace(GOOD, left=649)), ["line2 down", "1 of 700", "0 to 0"]),
        (
            replace(RIGHT, switches={"down": SwitchAccount(1400, 1396, 1300, 1300)}),
            ["switches, down", "0.1%"],
        ),
    ],
)
def test_what_is_wrong_is_named(measured: Measurements, named: list[str]) -> None:
    """Each way to be wrong is told once, with what was measured and what is allowed, and ends the run."""
    found = problems(TOPOLOGY, measured)
    assert len(found) == 1
    for part in [*named, "allowed"]:
        assert part in found[0]
    with pytest.raises(WrongNetworkError, match="nothing will be measured") as caught:
        CheckReport(TOPOLOGY, measured, 2.0, 1, found).require()
    assert caught.value.report["passed"] is False


@given(st.integers(0, 700))
def test_random_loss_is_held_to_its_share(lost: int) -> None:
    """A line with 5 % loss passes within five standard deviations of it, and not outside."""
    spec = LineSpec(name="line1", loss=0.05)
    topology = TOPOLOGY.model_copy(update={"lines": (spec, TOPOLOGY.lines[1])})
    lossy = RateMeasurement(10e6, 12.5e6, entered=700, dropped=0, left=700 - lost)
    measured = replace(RIGHT, rates={**RIGHT.rates, "line1": {"down": lossy, "up": lossy}})
    assert bool(problems(topology, measured)) != (7 <= lost <= 63)


def test_delay_is_held_to_what_was_asked() -> None:
    """A line that should delay 20 ms each way passes at 40.6 ms, and neither at 1 ms nor at 43 ms."""
    topology = Topology.default(lines=1, delay_ms=20)
    for rtt_ms, passes in ((40.6, True), (1.0, False), (43.0, False)):
        measured = replace(RIGHT, rates={"line1": RIGHT.rates["line1"]}, rtt_ms={"line1": rtt_ms})
        assert bool(problems(topology, measured)) != passes
