"""Each page plays in a real Chromium, and its observer says what the video element says."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from selenium import webdriver

from .site import Site, now, wait_for

PLAYERS = ["dashjs", "hlsjs", "shaka", "mp4", "webm"]
# The same questions, asked of the element itself and in one breath with the observer.
BOTH = """
const video = document.querySelector("video");
const { buffered, currentTime } = video;
let ahead = 0;
for (let i = 0; i < buffered.length; i += 1)
  if (buffered.start(i) <= currentTime && currentTime <= buffered.end(i))
    ahead = buffered.end(i) - currentTime;
return [steerline.now(), { ahead, at: currentTime, height: video.videoHeight, paused: video.paused }];
"""


def opened(chromium: webdriver.Chrome, site: Site, page: str) -> None:
    chromium.get(site.page(f"watch/{page}"))


@pytest.mark.parametrize("player", PLAYERS)
def test_each_page_plays_and_knows_what_its_video_does(
    chromium: webdriver.Chrome, site: Site, player: str
) -> None:
    """Buffer, position and picture agree with the element; the rate and the protocol are known."""
    opened(chromium, site, f"{player}.html")
    wait_for(lambda: now(chromium)["player_state"] == "PLAYING" and now(chromium)["position_s"] > 1)
    wait_for(lambda: now(chromium)["bitrate_kbps"])
    seen, real = chromium.execute_script(BOTH)
    assert seen["buffer_s"] == pytest.approx(real["ahead"], abs=0.1) and seen["buffer_s"] > 0.5
    assert seen["position_s"] == pytest.approx(real["at"], abs=0.1)
    assert seen["height"] == real["height"] in (360, 480) and 100 < seen["bitrate_kbps"] < 1100
    assert (seen["stall_count"], seen["stall_s"]) == (0, 0) and 0 < seen["startup_s"] < 10
    assert list(chromium.execute_script("return steerline.protocols()")) == ["http/1.1"]
    assert chromium.find_element("id", "message").text == ""
    shown = chromium.find_element("tag name", "dl").text
    assert "playing" in shown and f"{real['height']}p" in shown


def test_records_come_twice_a_second_and_once(chromium: webdriver.Chrome, site: Site) -> None:
    """`drain` gives each record once, in order, with the agent's field names; it starts, then plays."""
    opened(chromium, site, "dashjs.html?goal=8")
    wait_for(lambda: now(chromium)["position_s"] > 3)
    rows: list[dict[str, Any]] = chromium.execute_script("return steerline.drain()")
    again = chromium.execute_script("return steerline.drain()")
    assert len(again) <= 1
    times = [row["time_s"] for row in rows]
    assert times == sorted(times)
    samples = [row["time_s"] for row in rows if row["kind"] == "sample"]
    gaps = [later - earlier for earlier, later in itertools.pairwise(samples)]
    assert sorted(gaps)[len(gaps) // 2] == pytest.approx(0.5, abs=0.1)
    assert [row["player_state"] for row in rows if row["kind"] == "state"] == ["PLAYING"]
    assert rows[0]["player_state"] == "STARTING" and rows[0]["startup_s"] is None
    begun = next(row for row in rows if row["kind"] == "state")
    assert begun["buffer_s"] >= 2.4 and begun["height"] == 480
    assert sum(row["bytes"] for row in rows if row["kind"] == "segment") > 100_000
    assert {"time_s", "kind", "stall_count", "stall_s", "height", "bitrate_kbps"} <= rows[0].keys()
    json.dumps(rows)


def test_dash_js_fills_to_the_goal_and_no_further(chromium: webdriver.Chrome, site: Site) -> None:
    """A segment is asked for while buffer and segment are no more than the goal; top rate throughout."""
    opened(chromium, site, "dashjs.html?rule=on&goal=12")
    wait_for(lambda: now(chromium)["buffer_s"] > 10.5)
    wait_for(lambda: now(chromium)["position_s"] > 6)
    rows = chromium.execute_script("return steerline.drain()")
    after = [row["buffer_s"] for row in rows if row["position_s"] > 2]
    assert max(after) <= 12.05 and min(after) >= 9.5
    assert {row["height"] for row in rows if row["height"]} == {480}


def test_a_page_told_not_to_begin_waits_for_the_viewer(chromium: webdriver.Chrome, site: Site) -> None:
    """It is paused until play is pressed; its start-up is counted from there; a pause is no stall."""
    opened(chromium, site, "mp4.html?autoplay=0")
    wait_for(lambda: now(chromium)["player_state"] == "PAUSED")
    chromium.execute_script("document.querySelector('video').play()")
    wait_for(lambda: now(chromium)["player_state"] == "PLAYING")
    assert now(chromium)["startup_s"] < 2
    chromium.execute_script("document.querySelector('video').pause()")
    wait_for(lambda: now(chromium)["player_state"] == "PAUSED")
    assert now(chromium)["stall_count"] == 0
    chromium.execute_script("document.querySelector('video').currentTime = 30; void video.play()")
    wait_for(lambda: now(chromium)["player_state"] == "PLAYING" and now(chromium)["position_s"] > 30)
    assert now(chromium)["stall_count"] == 0
    chromium.execute_script("document.querySelector('video').currentTime = 59.5")
    wait_for(lambda: now(chromium)["player_state"] == "ENDED")
    assert now(chromium)["stall_count"] == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("rule=fast", 'rule is "fast"; allowed: on, off, default'),
        ("goal=2", 'goal is "2"; allowed: 4 to 600'),
        ("goal=", 'goal is ""; allowed: 4 to 600'),
    ],
)
def test_a_wrong_option_is_said_on_the_page(
    chromium: webdriver.Chrome, site: Site, options: str, says: str
) -> None:
    """With what is allowed."""
    opened(chromium, site, f"dashjs.html?{options}")
    wait_for(lambda: chromium.find_elements("id", "message"))
    assert chromium.find_element("id", "message").text == says


def test_a_film_that_is_not_there_is_a_failure(chromium: webdriver.Chrome, site: Site) -> None:
    """The page says so, and so does its record."""
    opened(chromium, site, "mp4.html?autoplay=0")
    chromium.execute_script("document.querySelector('video').src = '/video/nothing.mp4'")
    wait_for(lambda: now(chromium)["player_state"] == "FATAL_ERROR")
    assert now(chromium)["failure"]
    wait_for(lambda: "gave up" in chromium.find_element("id", "message").text)
