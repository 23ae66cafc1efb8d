"""REST: what operators see, and what they are told when they ask for the wrong thing."""

from __future__ import annotations

from typing import Any

import pytest

from steerline.flow.v1 import flow_pb2
from steerline.steering.v1 import steering_pb2
from steerline_appstation.clock import Clock

from .support import Controller, RunningStation, eventually, report


async def test_health_of_a_whole_station(station: RunningStation) -> None:
    """With controller and history at hand the status is ok."""

    async def well() -> Any:
        status, health = await station.get("/health")
        return health if (status, health["status"]) == (200, "ok") else None

    health = await eventually(well)
    assert health["controller"]["connected"]
    assert health["history"]["redis"] == {
        "ok": True,
        "problem": "",
        "since_s": health["history"]["redis"]["since_s"],
        "queued": 0,
        "dropped": 0,
    }


async def test_sessions_and_their_series(station: RunningStation) -> None:
    """A live session with its last values, and each of its reports in order of time."""
    async with station.agent() as agent:
        for number, buffer_s in enumerate((50, 30, 15, 14), start=1):
            await agent.ask(report(sequence_number=number, buffer_length_ms=1000 * buffer_s))
        await agent.ask(report("other"))
        status, sessions = await station.get("/sessions")
        assert status == 200
        assert [s["session_id"] for s in sessions] == ["other", "s1"]
        assert sessions[1]["critical"]
        assert sessions[1]["flows"][0]["client_address"] == "127.0.0.1"
        assert (sessions[1]["low_ms"], sessions[1]["target_buffer_ms"]) == (20_000, 55_000)
        assert sessions[1]["address"] == "127.0.0.1"

        async def stored() -> Any:
            _, answer = await station.get("/sessions/s1")
            return answer if len(answer["series"]) == 4 else None

        series = (await eventually(stored))["series"]
        assert [s["buffer_length_ms"] for s in series] == [50_000, 30_000, 15_000, 14_000]
        assert [s["critical"] for s in series] == [False, False, True, True]
        assert len((await station.get("/sessions/s1?limit=2"))[1]["series"]) == 2
        since_s = series[2]["time_s"]
        assert len((await station.get(f"/sessions/s1?since={since_s}"))[1]["series"]) == 2
        assert len((await station.get("/sessions?limit=1"))[1]) == 1


async def test_the_viewer_who_left_is_history(station: RunningStation, controller: Controller) -> None:
    """QUIT ends protection with that report; the session is shown with its reason."""
    async with station.agent() as agent:
        await agent.ask(report(sequence_number=1, buffer_length_ms=5000))
        assert (await controller.next()).critical
        await agent.ask(report(sequence_number=2, player_state=flow_pb2.PLAYER_STATE_QUIT))
        left = await controller.next()
        assert not left.critical
        assert left.player_state == flow_pb2.PLAYER_STATE_QUIT

    async def stored() -> Any:
        status, answer = await station.get("/sessions/s1")
        return answer["session"] if status == 200 and len(answer["series"]) == 2 else None

    session = await eventually(stored)
    assert (session["live"], session["ended_reason"]) == (False, "the viewer left")


async def test_decisions_are_filtered(station: RunningStation, controller: Controller) -> None:
    """By session, since, and limit; newest first."""
    now_s = Clock().unix_s()
    for number in range(6):
        controller.say(
            steering_pb2.ConnectResponse(
                decision=flow_pb2.Decision(
                    kind=flow_pb2.DECISION_KIND_STEER,
                    time_s=now_s + number,
                    site="home",
                    session_id="even" if number % 2 == 0 else "",
                    reason=f"reason {number}",
                    strategy="buffer-threshold",
                )
            )
        )

    async def reasons(query: str = "") -> list[str]:
        return [d["reason"][-1] for d in (await station.get("/decisions" + query))[1]]

    async def stored() -> bool:
        return len(await reasons()) == 6

    await eventually(stored)
    assert await reasons() == ["5", "4", "3", "2", "1", "0"]
    assert await reasons("?session=even") == ["4", "2", "0"]
    assert await reasons("?limit=2") == ["5", "4"]
    assert await reasons(f"?since={now_s + 3.5:f}&session=even") == ["4"]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/sessions/nobody", 404, "no session 'nobody' now or in history"),
        ("/lines/home/line9", 404, "no line 'line9' of site 'home'"),
        ("/nothing", 404, "Not Found"),
        ("/sessions/a%20b", 422, "session_id"),
        ("/sessions/" + "x" * 65, 422, "session_id"),
        ("/sessions?limit=0", 422, "greater than or equal to 1"),
        ("/sessions?limit=1001", 422, "less than or equal to 1000"),
        ("/sessions?limit=many", 422, "valid integer"),
        ("/sessions?ended=perhaps", 422, "valid boolean"),
        ("/decisions?since=-1", 422, "greater than or equal to 0"),
        ("/decisions?since=nan", 422, "since"),
        ("/decisions?session=a%20b", 422, "session"),
        ("/decisions?sesion=a", 422, "'sesion' is not known here; allowed: session, since, limit"),
        ("/lines?x=1", 422, "'x' is not known here; allowed: none"),
    ],
)
async def test_wrong_question(station: RunningStation, path: str, status: int, words: str) -> None:
    """The status and the detail say what was wrong."""
    found, answer = await station.get(path)
    assert found == status
    assert words in str(answer)


async def test_openapi_describes_everything(station: RunningStation) -> None:
    """Every route has a description, every parameter too."""
    _, document = await station.get("/openapi.json")
    assert set(document["paths"]) == {
        "/health",
        "/latency",
        "/sessions",
        "/sessions/{session_id}",
        "/lines",
        "/lines/{site}/{line}",
        "/decisions",
    }
    for path, methods in document["paths"].items():
        assert set(methods) == {"get"}
        assert methods["get"]["description"], path
        for parameter in methods["get"].get("parameters", []):
            assert parameter.get("description"), (path, parameter["name"])
