"""The addresses that browsers open."""

from __future__ import annotations

import pytest

from steerline_testbed.browser.pages_of import page_url
from steerline_testbed.experiment.settings import RunSettings


@pytest.mark.parametrize(
    ("values", "url"),
    [
        ({}, "http://198.19.0.1/watch/dashjs.html?autoplay=1&rule=on&goal=55"),
        (
            {"rule": "off", "overrides": {"agent.goal": 14}},
            "http://198.19.0.1/watch/dashjs.html?autoplay=1&rule=off&goal=14",
        ),
        ({"page": "shaka", "rule": "default"}, "http://198.19.0.1/watch/shaka.html?autoplay=1&rule=default"),
        ({"page": "webm"}, "http://198.19.0.1/watch/webm.html?autoplay=1"),
        ({"http": "2"}, "https://198.19.0.1/watch/dashjs.html?autoplay=1&rule=on&goal=55"),
        ({"http": "3"}, "https://198.19.0.1/watch/dashjs.html?autoplay=1&rule=on&goal=55"),
    ],
)
def test_the_page_has_what_the_run_asks_for(values: dict[str, object], url: str) -> None:
    """Player, rule, goal and protocol of the settings stand in the address; a plain file knows no rule."""
    assert page_url(RunSettings.parse({"player": "chromium", **values})) == url
