"""The station's parser and the contract's schema say the same of every report."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from steerline.flow.v1 import flow_pb2
from steerline.report.v1 import report_pb2
from steerline_appstation.core.station import Rejected, RejectionReason
from steerline_appstation.web import news
from steerline_appstation.web.models import WebRequest, WebResponse
from steerline_appstation.web.reading import report_of
from steerline_contract.playback import PlayerState, ReportCause

from .web_client import CONTRACT, REQUEST, RESPONSE, served

PROPERTIES: dict[str, Any] = CONTRACT["$defs"]["report"]["properties"]


def edges() -> list[tuple[str, object]]:
    """(field, value): at and just beyond each bound, each word, and values of other types."""
    found: list[tuple[str, object]] = []
    others: tuple[Any, ...] = ("", "1", 0, 1.0, 1.5, -0.0, True, None, [], {}, "PLAYING", "\n")
    for name, schema in PROPERTIES.items():
        found += [(name, value) for value in others]
        found += [
            (name, schema[key] + step)
            for key in ("minimum", "maximum")
            if key in schema
            for step in (-1, 0, 1)
        ]
        found += [(name, word) for word in schema.get("enum", ())]
        if "maxLength" in schema:
            found += [(name, "x" * (schema["maxLength"] + step)) for step in (0, 1)]
    server = {"address": "198.19.0.1", "port": 443}
    found += [("servers", [server] * n) for n in (1, 32, 33)]
    found += [("servers", [server | {"port": port}]) for port in (-1, 0, 65_535, 65_536, "1", 1.0)]
    found += [
        ("servers", [server | {"address": text}])
        for text in ("", "::1", "2001:db8::1", "1.2.3", "1.2.3.4.5", "::ffff:1.2.3.4", "a.example", "[::1]")
    ]
    found += [("servers", [server | {"later": 1}]), ("servers", [{"address": "::1"}]), ("servers", [7])]
    found += [("session_id", text) for text in ("a.b_c-9", "a" * 64, "a" * 65, "a b", "ä")]
    found += [("later", 1), ("flows", [])]
    return found


@pytest.mark.parametrize(("field", "value"), edges(), ids=lambda v: str(v)[:24])
def test_parser_and_schema_agree(field: str, value: object) -> None:
    """What one takes the other takes; both refuse the rest."""
    report = served() | {field: value}
    if field == "player_name" and isinstance(value, str) and not value.isprintable():
        return  # "Printable" has no word in JSON Schema; test_web_trouble holds it.
    if field == "remaining_media_ms" and value is None:
        return  # null is taken for absent.
    good = REQUEST.is_valid({"reports": [report]})
    assert (not isinstance(report_of(report), Rejected)) is good
    try:
        WebRequest.model_validate({"reports": [report]})
        modelled = True
    except ValidationError:
        modelled = False
    # An address is checked when it is read, in the contract's own words.
    assert modelled is good or (modelled and field == "servers")


@pytest.mark.parametrize("field", PROPERTIES)
def test_the_same_fields_are_needed(field: str) -> None:
    """A report without a field is good or wrong for both."""
    report = served()
    report.pop(field, None)
    assert (not isinstance(report_of(report), Rejected)) is REQUEST.is_valid({"reports": [report]})


def test_nothing_is_lost_on_the_way_to_words() -> None:
    """Every field of a report arrives in the words that the core takes."""
    report = report_of(
        served(
            "x", 7, cause="QUALITY_SWITCH", player_state="REBUFFERING", buffer_length_ms=1, starved=True,
            encoded_bitrate_kbps=2, target_buffer_ms=3, playback_rate=1.5, remaining_media_ms=4,
            stall_count=5, stall_duration_ms=6, player_name="n", servers=[],
        )
    )  # fmt: skip
    assert not isinstance(report, Rejected)
    assert (report.session_id, report.sequence_number, report.timestamp_ms) == ("x", 7, 1_007_000)
    assert (report.cause, report.player_state) == (ReportCause.QUALITY_SWITCH, PlayerState.REBUFFERING)
    assert (report.buffer_length_ms, report.encoded_bitrate_kbps, report.target_buffer_ms) == (1, 2, 3)
    assert (report.starved, report.playback_rate, report.remaining_media_ms) == (True, 1.5, 4)
    assert (report.stall_count, report.stall_duration_ms, report.player_name) == (5, 6, "n")
    assert report.flows == ()


def test_every_answer_is_as_the_contract_says() -> None:
    """Each kind of news, at its longest, is valid by the schema; an acknowledgement is no news."""
    long = "x" * 5000
    responses = [
        report_pb2.ReportResponse(assessment=flow_pb2.Assessment(session_id="s", critical=True)),
        report_pb2.ReportResponse(
            advice=flow_pb2.NetworkAdvice(session_id="s", sustainable_bps=10**12, reason=long)
        ),
        *(
            report_pb2.ReportResponse(
                decision=flow_pb2.Decision(
                    kind=kind, session_id="s", reason=long, from_line=long, to_line=long, time_s=1.5
                )
            )
            for kind in (
                flow_pb2.DECISION_KIND_STEER,
                flow_pb2.DECISION_KIND_KEEP,
                flow_pb2.DECISION_KIND_RELEASE,
            )
        ),
    ]
    told = [said for response in responses if (said := news.of(response)) is not None]
    assert len(told) == len(responses)
    assert news.of(report_pb2.ReportResponse(acknowledgement=report_pb2.Acknowledgement())) is None
    told.append(news.rejection(Rejected(RejectionReason.INVALID, "report", long), ""))
    RESPONSE.validate(WebResponse(messages=told).model_dump())
