"""What a run records: rows of four tables, all with times in seconds since the start of the player."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from steerline_testbed.experiment.clock import Zero
from steerline_testbed.experiment.jsons import mapping, number

Row = dict[str, object]

# Column -> Arrow type name, in order. record.schema.json says what each means.
TABLES: Mapping[str, Mapping[str, str]] = {
    "players": {
        "time_s": "float64",
        "video": "int32",
        "kind": "string",
        "state": "string",
        "buffer_s": "float64",
        "height": "int32",
        "bitrate_kbps": "float64",
        "played_s": "float64",
        "stall_count": "int32",
        "stall_s": "float64",
        "received_bytes": "int64",
    },
    "lines": {
        "time_s": "float64",
        "line": "string",
        "down_bytes": "int64",
        "up_bytes": "int64",
        "down_drops": "int64",
        "up_drops": "int64",
    },
    "downloads": {"time_s": "float64", "download": "int32", "bytes": "int64"},
    "decisions": {
        "time_s": "float64",
        "kind": "string",
        "site": "string",
        "strategy": "string",
        "session_id": "string",
        "flow": "string",
        "from_line": "string",
        "to_line": "string",
        "reason": "string",
    },
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment of one player. `received_bytes` counts all media received so far, -1 where unknown."""

    time_s: float
    video: int
    state: str
    buffer_s: float
    height: int = 0
    bitrate_kbps: float = 0.0
    played_s: float = -1.0
    stall_count: int = 0
    stall_s: float = 0.0
    received_bytes: int = -1
    kind: str = "sample"


@dataclass(frozen=True, slots=True)
class LineSample:
    """Counters of one line since it began: layer-2 bytes at the far ends, and drops of its queues."""

    time_s: float
    line: str
    down_bytes: int
    up_bytes: int
    down_drops: int = 0
    up_drops: int = 0


@dataclass(frozen=True, slots=True)
class DownloadSample:
    """Bytes of one download so far."""

    time_s: float
    download: int
    bytes: int


@dataclass(frozen=True, slots=True)
class DownloadLife:
    """When one download began and ended (None: it lasted to the end of the run)."""

    download: int
    start_s: float
    end_s: float | None = None
    end_reason: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """One page that the browsing customer read."""

    time_s: float
    bytes: int
    duration_s: float
    failed: bool = False


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One decision of the controller."""

    time_s: float
    kind: str
    site: str = ""
    strategy: str = ""
    session_id: str = ""
    flow: str = ""
    from_line: str = ""
    to_line: str = ""
    reason: str = ""


@dataclass(slots=True)
class Recording:
    """Everything that one run recorded."""

    samples: list[Sample] = field(default_factory=list[Sample])
    lines: list[LineSample] = field(default_factory=list[LineSample])
    downloads: list[DownloadSample] = field(default_factory=list[DownloadSample])
    lives: dict[int, DownloadLife] = field(default_factory=dict[int, DownloadLife])
    pages: list[Page] = field(default_factory=list[Page])
    decisions: list[DecisionRow] = field(default_factory=list[DecisionRow])

    def of_video(self, video: int) -> list[Sample]:
        """The samples of one player, by time."""
        return sorted((one for one in self.samples if one.video == video), key=lambda one: one.time_s)


def read_player(rows: Iterable[Mapping[str, object]], video: int, zero: Zero) -> list[Sample]:
    """The agent's record as samples. Segment records become the running count of received bytes."""
    samples: list[Sample] = []
    received = 0
    for row in rows:
        kind = str(row.get("kind", ""))
        if kind == "segment":
            received += int(number(row.get("bytes")))
        if kind not in ("sample", "state", "quality", "segment") or "player_state" not in row:
            continue
        samples.append(
            Sample(
                time_s=zero.relative(number(row.get("time_s"))),
                video=video,
                state=str(row["player_state"]).upper(),
                buffer_s=number(row.get("buffer_s")),
                height=int(number(row.get("height"))),
                bitrate_kbps=number(row.get("bitrate_kbps")),
                played_s=number(row.get("position_s"), -1.0),
                stall_count=int(number(row.get("stall_count"))),
                stall_s=number(row.get("stall_s")),
                received_bytes=received,
                kind=kind,
            )
        )
    return samples


def read_downloads(rows: Iterable[Mapping[str, object]], zero: Zero, into: Recording) -> None:
    """The download generator's record."""
    for row in rows:
        time_s = zero.relative(number(row.get("time_s")))
        which = int(number(row.get("download")))
        match row.get("kind"):
            case "start":
                into.lives[which] = DownloadLife(which, time_s)
            case "end":
                start_s = into.lives[which].start_s if which in into.lives else time_s
                into.lives[which] = DownloadLife(which, start_s, time_s, str(row.get("reason", "")))
                into.downloads.append(DownloadSample(time_s, which, int(number(row.get("bytes")))))
            case "bytes":
                into.downloads += [
                    DownloadSample(time_s, int(name), int(number(count)))
                    for name, count in (mapping(row.get("bytes")) or {}).items()
                ]
            case _:
                pass


def read_pages(rows: Iterable[Mapping[str, object]], zero: Zero) -> list[Page]:
    """The browsing customer's record."""
    return [
        Page(
            zero.relative(number(row.get("time_s"))),
            int(number(row.get("bytes"))),
            number(row.get("duration_s")),
            row.get("kind") == "page-failed",
        )
        for row in rows
        if row.get("kind") in ("page", "page-failed")
    ]


def flow_text(value: object) -> str:
    """A flow of a record as one text, whether it came as text or as its parts."""
    if isinstance(value, str):
        return value
    parts = mapping(value)
    if parts is not None and "client_address" in parts:
        name = {6: "tcp", 17: "udp"}.get(int(number(parts.get("protocol"))), str(parts.get("protocol")))
        ends = [f"{parts.get(f'{end}_address')}:{parts.get(f'{end}_port')}" for end in ("client", "server")]
        return f"{name} {ends[0]} - {ends[1]}"
    if parts is not None:
        return " ".join(str(part) for part in parts.values())
    return " ".join(str(part) for part in cast("list[object]", value)) if isinstance(value, list) else ""


def read_decisions(rows: Iterable[Mapping[str, object]], zero: Zero) -> list[DecisionRow]:
    """The controller's record."""
    decisions: list[DecisionRow] = []
    for row in rows:
        kind = str(row.get("kind", row.get("decision", ""))).upper()
        if kind not in ("STEER", "KEEP", "RELEASE"):
            continue
        text = {name: str(row.get(name) or "") for name in ("site", "strategy", "session_id", "reason")}
        decisions.append(
            DecisionRow(
                time_s=zero.relative(number(row.get("time_s"))),
                kind=kind.lower(),
                flow=flow_text(row.get("flow")),
                from_line=str(row.get("from_line") or ""),
                to_line=str(row.get("to_line") or ""),
                **text,
            )
        )
    return decisions
