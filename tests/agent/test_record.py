"""The record keeps to its schema."""

from __future__ import annotations

import json

import jsonschema

from .agent import ROOT
from .conftest import Start
from .station import Station
from .web import Film, Web

SCHEMA = ROOT / "contract" / "schema" / "agent-record.schema.json"


async def test_every_line_is_of_the_schema(web: Web, station: Station, start: Start) -> None:
    """States, samples, segments, flows, failures and the end are as the schema says."""
    web.film = Film(duration_s=3)
    web.requests_per_connection = 4
    web.break_off = {"/v480/0002.m4s"}
    agent = await start(web.url, *station.arguments)
    assert (await agent.ended()).code == 0
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    for line in agent.lines():
        validator.validate(line)  # pyright: ignore[reportUnknownMemberType]
    assert {line["kind"] for line in agent.lines()} == {
        "sample",
        "state",
        "segment",
        "failure",
        "flows",
        "end",
    }
    times = [line["time_s"] for line in agent.lines()]
    assert times == sorted(times)
