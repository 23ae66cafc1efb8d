"""What the player does with a film: it starts, fills, stalls, resumes, adapts and ends."""

from __future__ import annotations

import asyncio

from .agent import until
from .conftest import Start
from .web import Film, Web


async def test_a_film_is_played_to_its_end(web: Web, start: Start) -> None:
    """A short film plays in its own time, without a stall, wholly at the top rate, and the exit code is 0."""
    web.film = Film(duration_s=4)
    loop = asyncio.get_running_loop()
    began = loop.time()
    agent = await start(web.url)
    ended = await agent.ended()
    took = loop.time() - began
    assert ended.code == 0, ended.err
    assert 4 <= took < 6
    [end] = agent.lines("end")
    assert end["player_state"] == "ENDED"
    assert end["stall_count"] == 0
    assert end["shown_s"] == {"360p": 0.0, "480p": 4.0}
    assert [line["to"] for line in agent.lines("state")] == ["STARTING", "PLAYING", "ENDED"]
