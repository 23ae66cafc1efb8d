"""Extensions without a native host, over real HTTP with TLS: reports up, news down."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from typing import Any

import pytest

from steerline.flow.v1 import flow_pb2
from steerline.steering.v1 import steering_pb2

from .support import Controller, RunningStation, eventually, report
from .web_client import EXTENSION, REQUEST, ask, connected, head, post, read_answer, served


async def test_a_starving_player_reaches_the_controller(
    station: RunningStation, controller: Controller
) -> None:
    """Server and public address go up, ports as far as they are known, and the extension hears of it."""
    assert [m["critical"] for m in (await post(station, served())).messages] == [False]
    assert not (await controller.next()).critical
    request = served(sequence_number=2, buffer_length_ms=19_000)
    REQUEST.validate({"reports": [request]})
    messages = (await post(station, request)).messages
    assert messages == [{"type": "assessment", "session_id": "s1", "critical": True}]
    assessment = await controller.next()
    assert assessment.critical
    assert assessment.received_monotonic_ns > 0
    assert [
        (f.protocol, f.client_address, f.client_port, f.server_address, f.server_port)
        for f in assessment.flows
    ] == [(6, "127.0.0.1", 0, "198.19.0.1", 443), (17, "127.0.0.1", 0, "198.19.0.1", 0)]


async def test_several_sessions_in_one_request(station: RunningStation, controller: Controller) -> None:
    """Each report counts by itself; one that is wrong takes none of the others with it."""
    wrong = served("wrong", buffer_length_ms=-1)
    messages = (await post(station, served("a"), wrong, served("b"))).messages
    assert messages[0] == {
        "type": "rejection",
        "session_id": "wrong",
        "field": "buffer_length_ms",
        "message": "buffer_length_ms is -1; allowed: a whole number, 0 to 86400000",
    }
    assert [m["session_id"] for m in messages[1:]] == ["a", "b"]
    assert [(await controller.next()).session_id for _ in range(2)] == ["a", "b"]


async def test_news_wait_for_the_next_request(station: RunningStation, controller: Controller) -> None:
    """Decisions and advice come once, with the session they are about, and to nobody else."""
    await post(station, served("mine"), served("other"))
    decision = flow_pb2.Decision(
        kind=flow_pb2.DECISION_KIND_STEER, session_id="mine", reason="below low", to_line="line2", time_s=7.5
    )
    advice = flow_pb2.NetworkAdvice(session_id="mine", sustainable_bps=800_999, reason="full")
    controller.say(steering_pb2.ConnectResponse(decision=decision))
    controller.say(steering_pb2.ConnectResponse(advice=advice))
    number = 1

    async def told() -> list[dict[str, Any]]:
        nonlocal number
        number += 1
        assert (await post(station, served("other", number))).messages == []
        return (await post(station, served("mine", number))).messages

    assert await eventually(told) == [
        {
            "type": "decision",
            "session_id": "mine",
            "kind": "STEER",
            "from_line": "",
            "to_line": "line2",
            "time_s": 7.5,
            "reason": "below low",
        },
        {"type": "advice", "session_id": "mine", "sustainable_kbps": 800, "reason": "full"},
    ]
    assert await told() == []


async def test_a_session_that_never_asks_again_costs_little(
    station: RunningStation, controller: Controller
) -> None:
    """Of a thousand decisions the newest few wait; the answer stays within its bound."""
    await post(station, served())
    for number in range(1000):
        decision = flow_pb2.Decision(
            kind=flow_pb2.DECISION_KIND_KEEP, session_id="s1", reason=f"{number}", strategy="x"
        )
        controller.say(steering_pb2.ConnectResponse(decision=decision))
    number = 1
    seen: list[str] = []

    async def last() -> bool:
        nonlocal number
        number += 1
        messages = (await post(station, served(sequence_number=number))).messages
        assert len(messages) <= 17
        seen.extend(m["reason"] for m in messages if m["type"] == "decision")
        return bool(seen) and seen[-1] == "999"

    await eventually(last)


async def test_the_viewer_who_leaves(station: RunningStation, controller: Controller) -> None:
    """QUIT ends protection with that report; the next report is a new session's."""
    await post(station, served(buffer_length_ms=5000))
    assert (await controller.next()).critical
    await post(station, served(sequence_number=2, player_state="QUIT"))
    left = await controller.next()
    assert (left.critical, left.player_state) == (False, flow_pb2.PLAYER_STATE_QUIT)
    assert (await station.get("/sessions"))[1] == []


async def test_the_viewer_who_vanishes(controller: Controller, start_station: Any) -> None:
    """Silence for report_timeout ends the session."""
    station = await start_station(
        steering_port=controller.port,
        tls=True,
        report_timeout_s=1,
        listen={"reports": "127.0.0.1:0", "rest": "127.0.0.1:0", "web": "127.0.0.1:0"},
    )
    await post(station, served())

    async def ended() -> bool:
        return (await station.get("/sessions"))[1] == []

    await eventually(ended, within_s=3)


async def test_another_address_cannot_speak_for_a_session(
    station: RunningStation, controller: Controller
) -> None:
    """Neither report nor news: who comes from elsewhere is told so, and the session goes on."""
    await post(station, served(buffer_length_ms=19_000))
    await controller.next()
    decision = flow_pb2.Decision(kind=flow_pb2.DECISION_KIND_STEER, session_id="s1", reason="secret")
    controller.say(steering_pb2.ConnectResponse(decision=decision))
    for _ in range(3):
        quit_ = served(sequence_number=9, player_state="QUIT")
        (message,) = (await post(station, quit_, local="127.0.0.2")).messages
        assert (message["type"], message["field"]) == ("rejection", "session_id")
        assert "opened from another address" in message["message"]
    async with station.agent() as agent:  # Over gRPC neither; here it is the same address, so it may.
        await agent.ask(report("s1", 2))
    assert controller.assessments.qsize() <= 1
    assert [s["session_id"] for s in (await station.get("/sessions"))[1]] == ["s1"]


async def test_who_holds_the_stream_holds_the_session(station: RunningStation) -> None:
    """An agent's stream has precedence over web clients; when it is gone, the extension goes on."""
    async with station.agent() as agent:
        await agent.ask(report("s1", 1))
        (message,) = (await post(station, served(sequence_number=2))).messages
        assert (message["type"], message["field"]) == ("rejection", "session_id")
        assert "an agent's stream speaks for this one" in message["message"]

    number = 1

    async def taken() -> bool:
        nonlocal number
        number += 1
        return [m["type"] for m in (await post(station, served(sequence_number=number))).messages] != [
            "rejection"
        ]

    await eventually(taken)


async def test_two_clients_with_one_id_at_one_address(station: RunningStation) -> None:
    """The order of numbers and times keeps the second one's older reports out."""
    await post(station, served(sequence_number=100))
    (message,) = (await post(station, served(sequence_number=3))).messages
    assert (message["field"], message["message"].split(";")[1]) == (
        "sequence_number",
        " allowed: more than 100, the last one",
    )
    (message,) = (await post(station, served(sequence_number=101, timestamp_ms=5))).messages
    assert "time does not run backwards" in message["message"]


async def test_a_header_does_not_say_who_speaks(station: RunningStation, controller: Controller) -> None:
    """The client's address is the connection's, whatever proxies are made up."""
    await post(station, served(), X_Forwarded_For="198.18.1.12", Forwarded="for=198.18.1.12")
    assert {f.client_address for f in (await controller.next()).flows} == {"127.0.0.1"}


async def test_the_operators_routes_are_not_here(station: RunningStation) -> None:
    """Customers reach reports and its description, and nothing else."""
    for path in ("/", "/sessions", "/sessions/s1", "/health", "/decisions", "/lines", "/latency", "/docs"):
        assert (await ask(station, "GET", path)).status == 404, path
    assert (await ask(station, "GET", "/reports")).status == 405


async def test_openapi_says_what_to_post(station: RunningStation) -> None:
    """The document has the request's and the answer's schema, and every reference in it resolves."""
    document = (await ask(station, "GET", "/openapi.json")).json
    assert set(document["paths"]) == {"/reports"}
    post_ = document["paths"]["/reports"]["post"]
    schemas = document["components"]["schemas"]
    assert post_["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/WebRequest")
    assert set(post_["responses"]) == {"200", "400", "403", "408", "413", "415", "422", "429"}

    assert set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(document))) <= set(schemas)


async def test_an_extension_may_ask_from_its_own_origin(station: RunningStation) -> None:
    """The preflight of an MV3 extension passes, and its answer can be read; the one of a page does not."""
    preflight: dict[str, Any] = {
        "Access_Control_Request_Method": "POST",
        "Access_Control_Request_Headers": "content-type",
    }
    for origin in (EXTENSION, "moz-extension://4d5b0e42-6a0d-4c3e-9a52-2b1f5b0a7c11"):
        answer = await ask(station, "OPTIONS", "/reports", Origin=origin, **preflight)
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == origin
        assert "POST" in answer.headers["access-control-allow-methods"]
        assert "content-type" in answer.headers["access-control-allow-headers"].lower()
        assert (await post(station, served(), Origin=origin)).headers["access-control-allow-origin"] == origin
    for origin in ("https://evil.example", "null", "chrome-extension://x.evil.example", "http://198.19.0.1"):
        answer = await ask(station, "OPTIONS", "/reports", Origin=origin, **preflight)
        assert answer.status == 400
        assert "access-control-allow-origin" not in answer.headers


async def test_a_page_cannot_report_for_its_visitor(station: RunningStation, controller: Controller) -> None:
    """With a page's Origin, or as a form would send it without a preflight, nothing counts."""
    assert (await post(station, served(), Origin="https://evil.example")).status == 403
    assert (await post(station, served(), Origin="null", Content_Type="text/plain")).status == 415
    assert (await post(station, served(), Origin="null")).status == 200  # Firefox may hide an extension's.
    assert (await controller.next()).session_id == "s1"
    assert controller.assessments.empty()


async def test_one_connection_carries_many_requests(station: RunningStation) -> None:
    """Keep-alive: a browser does not shake hands once a second."""
    async with connected(station) as (reader, writer), asyncio.timeout(10):
        for number in range(1, 6):
            body = json.dumps({"reports": [served(sequence_number=number)]}).encode()
            writer.write(head("POST", "/reports", len(body), Content_Type="application/json") + body)
            assert (await read_answer(reader)).status == 200


async def test_without_a_setting_nothing_listens(controller: Controller, start_station: Any) -> None:
    """The web listener is off by default."""
    assert (await start_station(steering_port=controller.port)).ready.web == ""


async def test_tls_is_real(station: RunningStation) -> None:
    """A browser that does not know the authority refuses, and the next one is served."""
    host, _, port = station.ready.web.rpartition(":")
    with pytest.raises(ssl.SSLCertVerificationError):
        await asyncio.open_connection(host, int(port), ssl=ssl.create_default_context())
    assert (await post(station, served())).status == 200
