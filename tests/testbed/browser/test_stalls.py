"""A page whose network dries up, in a real Chromium."""

from __future__ import annotations

from typing import Any

from selenium import webdriver

from .site import Site, now, wait_for

# Bytes per second: enough for all; a fill that can be followed; less than the top rate; next to nothing.
PLENTY, FILL, LITTLE, TRICKLE = 3_000_000, 250_000, 45_000, 4_000


def throttle(chromium: webdriver.Chrome, bytes_per_s: int) -> None:
    conditions = {
        "offline": False,
        "latency": 5,
        "downloadThroughput": bytes_per_s,
        "uploadThroughput": PLENTY,
    }
    chromium.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)


def test_a_stall_is_counted_once_and_ends_at_two_and_a_half_seconds(
    chromium: webdriver.Chrome, site: Site
) -> None:
    """The rate goes down before; it begins when nothing is left, and ends no sooner than the agent's."""
    chromium.execute_cdp_cmd("Network.enable", {})
    chromium.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
    try:
        throttle(chromium, FILL)
        chromium.get(site.page("watch/dashjs.html?rule=on&goal=16"))
        wait_for(lambda: now(chromium)["buffer_s"] > 4.5)
        throttle(chromium, LITTLE)
        wait_for(lambda: now(chromium)["height"] == 360)
        throttle(chromium, TRICKLE)
        wait_for(lambda: now(chromium)["player_state"] == "REBUFFERING")
        throttle(chromium, PLENTY)
        wait_for(lambda: now(chromium)["player_state"] == "PLAYING")
    finally:
        throttle(chromium, 10 * PLENTY)
        chromium.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": False})
    rows: list[dict[str, Any]] = chromium.execute_script("return steerline.drain()")
    states = [row for row in rows if row["kind"] == "state"]
    assert [row["player_state"] for row in states[-3:]] == ["PLAYING", "REBUFFERING", "PLAYING"]
    *_, stall, resumed = states
    assert stall["buffer_s"] < 0.1 and resumed["buffer_s"] > 2.3
    stalls = [row for row in states if row["player_state"] == "REBUFFERING"]
    assert resumed["stall_count"] == len(stalls) == now(chromium)["stall_count"]
    lasted = resumed["stall_s"] - stall["stall_s"]
    assert lasted > 0 and abs(lasted - (resumed["time_s"] - stall["time_s"])) < 0.1
