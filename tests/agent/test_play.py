"""What the player does with a film: it starts, fills, stalls, resumes, adapts and ends."""

from __future__ import annotations

import asyncio

from .agent import Agent, until
from .conftest import Start
from .web import Film, Web


def states(agent: Agent) -> list[str]:
    """The states in their order."""
    return [line["to"] for line in agent.lines("state")]


async def test_a_film_is_played_to_its_end(web: Web, start: Start) -> None:
    """A short film plays in its own time, without a stall, wholly at the top rate, and the exit code is 0."""
    web.film = Film(duration_s=4)
    loop = asyncio.get_running_loop()
    began = loop.time()
    agent = await start(web.url)
    ended = await agent.ended()
    took = loop.time() - began
    assert ended.code == 0, ended.err
    assert 4 <= took < 7
    [end] = agent.lines("end")
    assert end["player_state"] == "ENDED"
    assert end["stall_count"] == 0
    assert end["shown_s"] == {"360p": 0.0, "480p": 4.0}
    assert states(agent) == ["STARTING", "PLAYING", "ENDED"]


async def test_the_buffer_fills_to_the_goal_and_no_further(web: Web, start: Start) -> None:
    """A segment is asked for only while it and the buffer fit the goal; a sample comes twice a second."""
    agent = await start(web.url, "--goal", "6", "--duration", "6")
    assert (await agent.ended()).code == 0
    samples = agent.lines("sample")
    assert 11 <= len(samples) <= 13
    assert max(max(line["video_buffer_s"], line["audio_buffer_s"]) for line in agent.lines()) <= 6
    assert all(line["buffer_s"] >= 4.5 for line in samples[3:])
    assert states(agent) == ["STARTING", "PLAYING", "QUIT"]


async def test_a_starving_player_stalls_and_resumes(web: Web, start: Start) -> None:
    """Without bytes it stalls when the buffer is empty; with bytes it resumes at 2.5 s; both are measured."""
    agent = await start(web.url, "--goal", "4", "--rule", "off")
    await until(lambda: "PLAYING" in states(agent))
    await until(lambda: agent.lines()[-1]["buffer_s"] > 2)
    web.rate_bps = 100_000
    await until(lambda: "REBUFFERING" in states(agent), 15)
    await asyncio.sleep(1.5)
    web.rate_bps = 0
    await until(lambda: states(agent)[-1] == "PLAYING")
    await agent.stop()
    stalled, resumed = agent.lines("state")[2:4]
    assert stalled["buffer_s"] == 0
    assert stalled["stall_count"] == 1
    assert resumed["buffer_s"] >= 2.5
    took = resumed["time_s"] - stalled["time_s"]
    assert took > 1.4
    assert abs(resumed["stall_s"] - took) < 0.1


async def test_the_rate_rule_steps_down_below_eight_seconds_and_up_at_twenty_five(
    web: Web, start: Start
) -> None:
    """Too slow a line brings it to 360p before it stalls; when the buffer is full again it comes back."""
    web.rate_bps = 8_000_000
    agent = await start(web.url, "--goal", "45")
    await until(lambda: agent.lines() and agent.lines()[-1]["buffer_s"] > 9, 20)
    web.rate_bps = 600_000
    await until(lambda: agent.lines("quality"), 30)
    web.rate_bps = 0
    await until(lambda: len(agent.lines("quality")) == 2, 30)
    await agent.stop()
    down, up = agent.lines("quality")
    assert (down["from"], down["to"]) == ("480p", "360p")
    assert down["buffer_s"] < 8
    assert (up["from"], up["to"]) == ("360p", "480p")
    assert up["buffer_s"] >= 24.9
    assert agent.lines()[-1]["stall_count"] == 0


async def test_with_the_rule_off_it_stays_at_the_top(web: Web, start: Start) -> None:
    """--rule off never asks for a lower rate, whatever it costs."""
    agent = await start(web.url, "--rule", "off", "--goal", "4")
    await until(lambda: "PLAYING" in states(agent))
    web.rate_bps = 500_000
    await until(lambda: "REBUFFERING" in states(agent), 40)
    await agent.stop()
    assert agent.lines("quality") == []
    assert not any(path.startswith("/v360") for _, path in web.requests)


async def test_a_signal_ends_the_session_and_keeps_the_record(web: Web, start: Start) -> None:
    """SIGTERM lets the viewer leave: exit code 0, last state QUIT, a last line in the record."""
    agent = await start(web.url)
    await until(lambda: "PLAYING" in states(agent))
    ended = await agent.stop()
    assert ended.code == 0
    assert states(agent)[-1] == "QUIT"
    assert agent.lines()[-1]["kind"] == "end"


async def test_two_hundred_players_in_one_process(web: Web, start: Start) -> None:
    """200 players, started one after the other, each with its own connections, all play and end well."""
    web.film = Film(duration_s=6, video_bps={360: 40_000}, audio_bps=8_000)
    agent = await start(
        web.url, "--players", "200", "--stagger", "0.01", "--session-prefix", "many", "--quiet"
    )
    ended = await agent.ended(60)
    assert ended.code == 0, ended.err
    ends = agent.lines("end")
    assert {line["session_id"] for line in ends} == {f"many-{number}" for number in range(1, 201)}
    assert all(line["player_state"] == "ENDED" for line in ends)
    assert 200 * 2 <= len(web.connections) <= 200 * 6
    assert "200 players" in ended.out
