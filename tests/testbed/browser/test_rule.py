"""The pages' rate rule is the agent's (client-agent/agent/src/player/rule.rs): same sequences, same rates."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from steerline_testbed.browser.web import PAGES

PROGRAM = """
globalThis.window = {};
require(process.argv[1]);
const { settings, sights } = JSON.parse(process.argv[2]);
const chooser = new window.steerlineRule.Chooser(settings);
const rates = sights.map((sight) => chooser.choose(sight));
console.log(JSON.stringify([rates, chooser.downBelow, chooser.upAt]));
"""


def choose(settings: dict[str, Any], sights: list[dict[str, Any]]) -> list[Any]:
    """What the rule chooses, and its thresholds."""
    asked = json.dumps({"settings": settings, "sights": sights})
    command = ["node", "-e", PROGRAM, str(PAGES / "rule.js"), asked]
    return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=20).stdout)


def at(*seconds: float) -> list[dict[str, Any]]:
    return [{"buffered": value, "playing": True, "stalled": False} for value in seconds]


@pytest.mark.parametrize(
    ("sights", "rates"),
    [
        (at(0, 2, 4, 6, 7), [2, 2, 2, 2, 2]),
        (at(0, 8, 7, 7, 7, 8, 24, 25, 26, 8), [2, 2, 1, 0, 0, 0, 0, 1, 2, 2]),
        (at(4, 3), [2, 1]),
        ([{"buffered": 0, "playing": False, "stalled": True}], [1]),
    ],
)
def test_it_chooses_as_the_agent_does(sights: list[dict[str, Any]], rates: list[int]) -> None:
    """The initial fill stays at the top; below 8 s one step down, from 25 s one step up."""
    assert choose({"on": True, "goal": 55, "top": 2}, sights) == [rates, 8, 25]


def test_a_small_goal_has_proportionate_thresholds_and_off_is_off() -> None:
    """A quarter and 0.6 of a goal of 10 s; switched off it stays at the top."""
    assert choose({"on": True, "goal": 10, "top": 1}, [])[1:] == [2.5, 6]
    assert choose({"on": False, "goal": 55, "top": 2}, at(0, 20, 3, 1))[0] == [2, 2, 2, 2]
