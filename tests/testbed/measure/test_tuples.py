"""How reports of connections are judged by a capture, on packets whose answers are plain."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from steerline_testbed.experiment.errors import ExperimentError
from steerline_testbed.experiment.servers import nginx_configuration
from steerline_testbed.measure import tuples
from steerline_testbed.measure.capture import TCP, UDP, Connection, Packet, read_capture
from steerline_testbed.measure.flow_truth import Judgement, Named, changes_of, judge, lives_of, summarise

SERVER = "198.19.0.1"
FILM, SOUND, OTHER = (Connection(TCP, "198.18.1.11", port, SERVER, 80) for port in (4001, 4002, 4003))
QUIC = Connection(UDP, "198.18.1.11", 4004, SERVER, 444)
T0 = 1_800_000_000.0


def came(connection: Connection, at_s: float, size: int, ends: bool = False) -> Packet:
    return Packet(T0 + at_s, connection, True, size, ends)


def steady(connection: Connection, start_s: float, end_s: float, size: int) -> list[Packet]:
    return [came(connection, start_s + n / 2, size) for n in range(int((end_s - start_s) * 2))]


def judged(
    packets: Sequence[Packet], at_s: float, *connections: Connection, window_s: float = 2
) -> Judgement:
    lives = lives_of(sorted(packets, key=lambda one: one.time_s))
    report = Named(T0 + at_s, "a", frozenset(connections))
    return judge(report, lives, changes_of(lives), window_s)


def test_what_carries_a_tenth_is_needed_and_less_is_not() -> None:
    """The film's connection must be there, sound at a twentieth need not, at a third it must."""
    little = steady(FILM, 0, 10, 100_000) + steady(SOUND, 0, 10, 5_000)
    assert judged(little, 9, FILM).right
    assert judged(little, 9, FILM, SOUND).right
    assert judged(little, 9, SOUND).missing == {FILM}
    much = steady(FILM, 0, 10, 100_000) + steady(SOUND, 0, 10, 50_000)
    assert judged(much, 9, FILM).missing == {SOUND}
    assert judged(much, 9).missing == {FILM, SOUND}


def test_a_connection_that_never_was_is_wrong() -> None:
    """Naming every port there could be is no art."""
    found = judged(steady(FILM, 0, 10, 100_000), 9, FILM, OTHER)
    assert not found.right
    assert found.invented == {OTHER}


def test_one_that_does_nothing_is_seen_but_not_wrong() -> None:
    """It is counted apart, as more than was needed."""
    found = judged([came(OTHER, 0, 500), *steady(FILM, 0, 30, 100_000)], 25, FILM, OTHER)
    assert found.right
    assert found.idle == {OTHER}


def test_reports_within_a_second_of_a_change_are_left_out() -> None:
    """A first byte and the end of one that carried are changes; a second later only the new one is right."""
    packets = [*steady(FILM, 0, 5, 100_000), came(FILM, 5, 0, ends=True), *steady(OTHER, 5.5, 12, 100_000)]
    assert judged(packets, 5.2, FILM).kind == "after-change"
    assert judged(packets, 6.4, FILM).kind == "after-change"
    late = judged(packets, 6.6, FILM)
    assert (late.kind, late.missing, late.ended) == ("judged", {OTHER}, {FILM})
    assert judged(packets, 6.6, OTHER).right


def test_a_connection_that_never_carried_anything_is_no_change() -> None:
    """Browsers open connections ahead of need; they may not excuse a wrong report."""
    ahead = Packet(T0 + 8.5, OTHER, False, 0, False)
    assert judged([*steady(FILM, 0, 10, 100_000), ahead], 9, SOUND).kind == "judged"


def test_bytes_of_before_a_change_do_not_count() -> None:
    """The page came by TCP and then the film by QUIC: a second later TCP is not asked for."""
    packets = [*steady(FILM, 0, 3, 900_000), *steady(QUIC, 3, 9, 100_000)]
    assert judged(packets, 4.4, QUIC).right
    assert judged(packets, 4.4, FILM).missing == {QUIC}


def test_without_bytes_nothing_is_judged() -> None:
    """Acknowledgements of QUIC say nothing about the film."""
    quiet = [*steady(QUIC, 0, 3, 100_000), *steady(QUIC, 3, 9, 30)]
    assert judged(quiet, 8).kind == "nothing-carried"


def test_the_summary_counts_each_report_once() -> None:
    """Judged, left out after a change, and left out without bytes are all of them."""
    packets = [*steady(FILM, 0, 10, 100_000), *steady(FILM, 10, 20, 10)]
    reports = [Named(T0 + at_s, "a", frozenset({FILM})) for at_s in (0.5, 3, 5, 19)]
    reports.append(Named(T0 + 7, "a", frozenset({SOUND})))
    found = summarise(reports, packets, 2.0)
    assert (found["reports"], found["judged"], found["right"], found["share_right"]) == (5, 3, 2, 0.6667)
    assert (found["left_out_after_change"], found["left_out_nothing_carried"]) == (1, 1)
    assert found["wrong"][0]["missing"] == [str(FILM)]


def frame(protocol: int, down: bool, payload: int, flags: int = 0x10) -> bytes:
    """As a capture keeps it: headers only, with the length that was on the wire."""
    server, client = bytes([198, 19, 0, 1]), bytes([198, 18, 1, 11])
    ports = (80, 4001) if down else (4001, 80)
    header = struct.pack("!HH", *ports)
    header += (bytes(8) + bytes([8 << 4, flags]) + bytes(18)) if protocol == TCP else bytes(4)
    ends = server + client if down else client + server
    length = 20 + len(header) + payload
    ip = struct.pack("!BBHHHBBH", 0x45, 0, length, 1, 0x4000, 64, protocol, 0) + ends
    return bytes(12) + b"\x08\x00" + ip + header


def pcap(*frames: bytes) -> bytes:
    content = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1)
    for number, one in enumerate(frames):
        content += struct.pack("<IIII", 1_800_000_000 + number, 250_000, len(one), len(one)) + one
    return content


def test_headers_tell_payload_direction_and_end() -> None:
    """Payload is what the headers say was on the wire, not what the capture kept."""
    packets = list(
        read_capture(
            pcap(frame(TCP, True, 1400), frame(TCP, False, 100, 0x11), frame(UDP, True, 1200)), SERVER
        )
    )
    assert [(p.down, p.payload_bytes, p.ends) for p in packets] == [
        (True, 1400, False),
        (False, 100, True),
        (True, 1200, False),
    ]
    assert packets[0].connection == FILM
    assert packets[2].connection.protocol == UDP
    assert packets[1].time_s == pytest.approx(T0 + 1.25)  # pyright: ignore[reportUnknownMemberType]


def test_a_capture_that_is_cut_off_or_of_others_is_read() -> None:
    """tcpdump may be killed in the middle of a record; ARP and other hosts are not ours."""
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    content = pcap(frame(TCP, True, 9), arp, frame(TCP, True, 9))
    assert len(list(read_capture(content[:-20], SERVER))) == 1
    assert not list(read_capture(content, "198.19.0.9"))
    with pytest.raises(ValueError, match="not a pcap file"):
        list(read_capture(bytes(64), SERVER))


def test_nginx_is_told_the_age_once() -> None:
    """The directive is in the configuration, in milliseconds."""
    text = tuples.aged(nginx_configuration(Path("/x")), 7.5)
    assert text.count("keepalive_time 7500ms;") == 1


def test_what_cannot_be_measured_is_refused_with_the_allowed_range() -> None:
    """Before anything is built."""

    def say(text: str) -> None:
        raise AssertionError(text)

    with pytest.raises(ExperimentError, match=r"--change-every is 1; allowed: 0 \(never\), 3 to 600 s"):
        tuples.measure("chromium", "2", 30, 1, 2, 1, say)
    with pytest.raises(ExperimentError, match=r"--window is 0.5; allowed: 1 to 30 s"):
        tuples.measure("chromium", "2", 30, 10, 0.5, 1, say)
    with pytest.raises(ExperimentError, match=r"--http is 3; allowed with firefox: 1.1, 2"):
        tuples.measure("firefox", "3", 30, 10, 2, 1, say)
    with pytest.raises(ExperimentError, match=r"duration_s is 2"):
        tuples.measure("firefox", "2", 2, 0, 2, 1, say)


def test_tcpdump_tells_what_it_missed() -> None:
    """The count of its last words; none of silence."""
    assert (
        tuples.dropped("10 packets captured\n12 packets received by filter\n3 packets dropped by kernel") == 3
    )
    assert tuples.dropped("1 packet dropped by kernel") == 1
    assert tuples.dropped("") is None
