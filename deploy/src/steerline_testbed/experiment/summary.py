"""summary.json: every figure of a run, from its recording; held against its schema before it is written."""

from __future__ import annotations

import importlib
import json
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from steerline_testbed.experiment import figures, traffic_figures
from steerline_testbed.experiment.errors import ExperimentError
from steerline_testbed.experiment.series import Recording
from steerline_testbed.experiment.settings import RunSettings

FORMAT = 1
LONGEST_GAP_S = 3.0


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known of a run beside its series."""

    run_id: str
    started_at: str
    end_s: float
    failure: str = ""
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    media: Mapping[str, Any] = field(default_factory=dict[str, Any])
    self_assertion: Mapping[str, Any] = field(default_factory=dict[str, Any])
    congestion_control_seen: Mapping[str, int] = field(default_factory=dict[str, int])
    enforcement: Mapping[str, Any] | None = None
    reporting: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    retransmitted_segments: Mapping[str, int] = field(default_factory=dict[str, int])
    cpu_share: float | None = None


def build(settings: RunSettings, recording: Recording, known: Circumstances) -> dict[str, Any]:
    """The whole summary. Figures that never came to be are null, never 0."""
    start_s, end_s = settings.traffic_start_s, known.end_s
    videos: list[dict[str, Any]] = []
    for video, node in enumerate(settings.seats, start=1):
        samples = recording.of_video(video)
        videos.append(
            {
                "video": video,
                "node": node,
                "buffer": asdict(figures.buffer_figures(samples, start_s, end_s)),
                "play": asdict(figures.play_figures(samples, end_s)),
                "reporting": _plain(known.reporting.get(f"player{video}")),
            }
        )
    downloads = traffic_figures.download_figures(recording.downloads, recording.lives, end_s)
    summary: dict[str, Any] = {
        "format": FORMAT,
        "run_id": known.run_id,
        "state": "partial" if known.failure else "complete",
        "failure": known.failure,
        "started_at": known.started_at,
        "duration_s": end_s,
        "seed": settings.seed,
        "settings": settings.model_dump(mode="json"),
        "versions": dict(known.versions),
        "media": dict(known.media),
        "self_assertion": dict(known.self_assertion),
        "congestion_control": {
            "asked": settings.congestion_control,
            "seen": dict(known.congestion_control_seen),
        },
        "browser": _browser(settings, known),
        "videos": videos,
        "lines": _lines(settings, recording, downloads.last_started_at_s, end_s),
        "downloads": asdict(downloads) | {"rates_bps": list(downloads.rates_bps)},
        "browsing": _browsing(recording),
        "decisions": asdict(traffic_figures.decision_figures(recording.decisions, start_s, end_s)),
        "enforcement": None if known.enforcement is None else dict(known.enforcement),
        "retransmitted_segments": dict(known.retransmitted_segments),
        "cpu_share": known.cpu_share,
    }
    reasons = reasons_against(settings, summary)
    return summary | {"valid": not reasons, "invalid_because": reasons}


def _browser(settings: RunSettings, known: Circumstances) -> dict[str, Any] | None:
    """What watched, where it was a browser."""
    if settings.player == "headless":
        return None
    return {
        "name": settings.player,
        "version": known.versions.get(settings.player, ""),
        "page": settings.page,
        "http": settings.http,
        "tabs": settings.tabs,
    }


def _plain(figures_of_one: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if figures_of_one is None else dict(figures_of_one)


def reasons_against(settings: RunSettings, summary: Mapping[str, Any]) -> list[str]:
    """Why this run does not count; empty when it does."""
    reasons: list[str] = []
    if summary["state"] != "complete":
        reasons.append(f"the run did not end as planned: {summary['failure']}")
    reasons += [
        f"video {one['video']}: {one['play']['reason']}"
        for one in summary["videos"]
        if not one["play"]["valid"]
    ]
    seen = set(summary["congestion_control"]["seen"])
    if settings.flows and seen != {settings.congestion_control}:
        shown = ", ".join(sorted(seen)) or "none"
        reasons.append(f"congestion control seen: {shown}; allowed: {settings.congestion_control}")
    downloads = summary["downloads"]
    if settings.flows and summary["state"] == "complete":
        wanted = downloads_due(settings, summary["duration_s"])
        if downloads["count"] < wanted:
            reasons.append(f"{downloads['count']} downloads started; allowed: {wanted}")
        if downloads["ended_early"]:
            reasons.append(f"{downloads['ended_early']} downloads ended early; allowed: none")
    gap_s = summary["lines"]["longest_gap_s"]
    if gap_s is not None and gap_s > LONGEST_GAP_S:
        reasons.append(
            f"the machine was too busy to look at the lines for {gap_s:.1f} s; allowed: {LONGEST_GAP_S:g} s"
        )
    if summary["self_assertion"].get("passed") is False:
        reasons.append("the network was not the one asked for")
    return reasons


def downloads_due(settings: RunSettings, end_s: float) -> int:
    """How many downloads must have started a second before the end."""
    time_s = end_s - 1.0 - settings.traffic_start_s
    if time_s < 0:
        return 0
    if settings.traffic_interval_s == 0:
        return settings.flows
    return min(settings.flows, int(time_s / settings.traffic_interval_s))


def _lines(
    settings: RunSettings, recording: Recording, last_started_s: float | None, end_s: float
) -> dict[str, Any]:
    start_s, capacity = settings.traffic_start_s, settings.capacity_bps
    used = traffic_figures.used_bps(recording.lines, start_s, end_s)
    full = (
        traffic_figures.used_bps(recording.lines, last_started_s, end_s) if last_started_s is not None else {}
    )
    drops: dict[str, int] = {}
    for one in recording.lines:
        drops[one.line] = max(drops.get(one.line, 0), one.down_drops)
    return {
        "capacity_bps": capacity,
        "used_bps": used,
        "rho": traffic_figures.rho(used, capacity) if end_s > start_s else None,
        "rho_all_downloads_running": traffic_figures.rho(full, capacity) if full else None,
        "rho_goodput": _goodput_rho(settings, recording, end_s),
        "down_drops": drops,
        "longest_gap_s": traffic_figures.longest_gap_s(recording.lines, end_s),
    }


def _goodput_rho(settings: RunSettings, recording: Recording, end_s: float) -> float | None:
    """Bytes that applications received over what the lines could carry, from the start of the traffic."""
    start_s, capacity = settings.traffic_start_s, sum(settings.capacity_bps.values())
    if end_s <= start_s:
        return None
    counters: dict[tuple[str, int], list[tuple[float, int]]] = {}
    for sample in recording.samples:
        if sample.received_bytes >= 0:
            counters.setdefault(("video", sample.video), []).append((sample.time_s, sample.received_bytes))
    for download in recording.downloads:
        counters.setdefault(("download", download.download), []).append((download.time_s, download.bytes))
    for life in recording.lives.values():
        counters.setdefault(("download", life.download), []).append((life.start_s, 0))
    total = sum(traffic_figures.bytes_between(sorted(points), start_s, end_s) for points in counters.values())
    total += sum(page.bytes for page in recording.pages if start_s <= page.time_s <= end_s)
    return total * 8 / (end_s - start_s) / capacity


def _browsing(recording: Recording) -> dict[str, Any]:
    good = [page.duration_s for page in recording.pages if not page.failed]
    return {
        "pages": len(good),
        "failed": sum(1 for page in recording.pages if page.failed),
        "median_page_s": statistics.median(good) if good else None,
        "bytes": sum(page.bytes for page in recording.pages),
    }


def schema_folder() -> Path:
    """`contract/schema` of the checkout that this code runs from. Raises ExperimentError."""
    for parent in Path(__file__).resolve().parents:
        if (parent / "contract" / "schema").is_dir():
            return parent / "contract" / "schema"
    raise ExperimentError("contract/schema is not above this package; run from a checkout of the repository")


def validate(summary: Mapping[str, Any]) -> None:
    """Holds a summary against summary.schema.json. Raises ExperimentError naming the place."""
    jsonschema: Any = importlib.import_module("jsonschema")
    schema = json.loads((schema_folder() / "summary.schema.json").read_text())
    found = jsonschema.Draft202012Validator(schema).iter_errors(json.loads(json.dumps(summary)))
    problems = [f"{'/'.join(str(part) for part in one.absolute_path)}: {one.message}" for one in found]
    if problems:
        raise ExperimentError("the summary breaks its schema: " + "; ".join(problems[:5]))
