"""Many runs: a list of kinds, each over seeds, some side by side, resumable, and one table in the end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steerline_testbed.experiment.aggregate import Kind, aggregate, comma_separated, markdown
from steerline_testbed.experiment.atomic import replace_file
from steerline_testbed.experiment.errors import ExperimentError
from steerline_testbed.experiment.jsons import parse_mapping
from steerline_testbed.experiment.results import finished
from steerline_testbed.experiment.settings import RunSettings

DEFAULT_SEEDS = (1, 2, 3, 4, 5)
MOST_SIDE_BY_SIDE = 3
# A run that begins measures whether its network is right; another run's start would disturb it.
STAGGER_S = 12.0
_BY_ITSELF = {"player": "chromium", "rule": "default", "flows": 50, "duration_s": 180, "traffic_start_s": 30}

PRESETS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "main-job": (
        {"name": "buffer-threshold-50", "strategy": "buffer-threshold", "flows": 50},
        {"name": "round-robin-50", "strategy": "round-robin", "flows": 50},
        {"name": "buffer-threshold-50-nat", "strategy": "buffer-threshold", "flows": 50, "nat": True},
        {"name": "source-way-20", "strategy": "buffer-threshold", "flows": 20, "best_effort": "single"},
        {"name": "single-20", "strategy": "single", "flows": 20},
        {"name": "round-robin-20", "strategy": "round-robin", "flows": 20},
        {"name": "single-20-rule-off", "strategy": "single", "flows": 20, "rule": "off"},
        {"name": "round-robin-20-rule-off", "strategy": "round-robin", "flows": 20, "rule": "off"},
        # Nobody browses: exactly four downloads beside the video, as in the published experiment.
        {
            "name": "round-robin-20-rule-off-no-browsing",
            "strategy": "round-robin",
            "flows": 20,
            "rule": "off",
            "browsers": 0,
        },
    ),
    # A real browser costs a core: one run at a time.
    "browser": tuple(
        {"name": f"{player}-{strategy}", "player": player, "strategy": strategy, "duration_s": 240}
        for strategy in ("single", "buffer-threshold")
        for player in ("headless", "chromium")
    ),
    # Each player by its own defaults, beside so many downloads that equal shares starve it.
    "players": tuple(
        {"name": f"{page}-{strategy}", "strategy": strategy, "page": page, **_BY_ITSELF}
        for page in ("dashjs", "hlsjs", "shaka", "mp4")
        for strategy in ("round-robin", "buffer-threshold")
    ),
}


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a campaign."""

    name: str
    settings: RunSettings
    folder: Path


def load_runs(path: Path) -> list[Mapping[str, Any]]:
    """The `[[run]]` tables of a campaign file over its `[defaults]`. Raises ExperimentError."""
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ExperimentError(f"{path}: {error}") from None
    unknown = sorted(set(content) - {"defaults", "run"})
    if unknown or not content.get("run"):
        raise ExperimentError(f"{path}: {unknown or 'no [[run]]'}; allowed: [defaults] and [[run]] tables")
    return [{**content.get("defaults", {}), **run} for run in content["run"]]


def plan(runs: Sequence[Mapping[str, Any]], out: Path, seeds: Sequence[int] | None = None) -> list[Job]:
    """Every run of every kind, seed by seed, so that an early end leaves all kinds with some.

    Raises ExperimentError for a wrong setting or a name used twice.
    """
    kinds: list[tuple[str, dict[str, Any], Sequence[int]]] = []
    for run in runs:
        values = dict(run)
        name = str(values.pop("name", values.get("strategy", "run")))
        if name in [known for known, _, _ in kinds] or "/" in name or name.startswith("."):
            raise ExperimentError(f"run name is {name!r}; allowed: a file name, each once")
        own = values.pop("seeds", DEFAULT_SEEDS)
        kinds.append((name, values, seeds or own))
    most = max((len(chosen) for _, _, chosen in kinds), default=0)
    return [
        Job(name, RunSettings.parse({**values, "seed": chosen[turn]}), out / name / f"seed-{chosen[turn]}")
        for turn in range(most)
        for name, values, chosen in kinds
        if turn < len(chosen)
    ]


@dataclass(slots=True)
class _Going:
    job: Job
    process: subprocess.Popen[bytes]
    log: Path


def run_campaign(jobs: Sequence[Job], parallel: int, out: Path, say: Callable[[str], None]) -> list[Kind]:
    """Runs what is not complete yet, so many side by side, and writes `out/campaign.{md,csv,json}`.

    Ends what it started when it is interrupted. The table is written anew after each run.
    """
    waiting = [job for job in jobs if finished(job.folder) is None]
    say(f"{len(jobs)} runs, {len(jobs) - len(waiting)} complete before")
    going: list[_Going] = []
    started_at_s = -STAGGER_S
    begin_s = time.monotonic()
    try:
        while waiting or going:
            now_s = time.monotonic() - begin_s
            if waiting and len(going) < parallel and now_s - started_at_s >= STAGGER_S:
                job = waiting.pop(0)
                going.append(_start(job))
                started_at_s = now_s
                say(f"started {job.name}, seed {job.settings.seed}")
            for one in [one for one in going if one.process.poll() is not None]:
                going.remove(one)
                say(_ended(one, len(waiting) + len(going)))
                write_table(jobs, out)
            time.sleep(0.5)
    finally:
        for one in going:
            one.process.terminate()
        for one in going:
            one.process.wait()
    return write_table(jobs, out)


def _start(job: Job) -> _Going:
    job.folder.mkdir(parents=True, exist_ok=True)
    settings = job.folder / "settings.json"
    replace_file(settings, job.settings.model_dump_json(indent=2).encode())
    log = job.folder / "run.log"
    command = [sys.executable, "-m", "steerline_testbed.experiment.cli", "run", "--plain", "--resume"]
    command += ["--settings", str(settings), "--out", str(job.folder)]
    with log.open("wb") as out:
        # A session of its own: Ctrl-C reaches the campaign alone, which then ends each run once.
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
        )
    return _Going(job, process, log)


def _ended(one: _Going, left: int) -> str:
    lines = one.log.read_text(errors="replace").strip().splitlines()
    code = one.process.returncode
    word = {0: "done", 3: "done, but it does not count"}.get(code, f"FAILED (exit status {code})")
    detail = "" if code == 0 else ": " + " ".join(lines[-3:])[-400:]
    return f"{word}: {one.job.name}, seed {one.job.settings.seed}, {left} left{detail}"


def write_table(jobs: Sequence[Job], out: Path) -> list[Kind]:
    """Aggregates what is complete in the folders of these jobs and writes the three tables."""
    kinds: list[Kind] = []
    for name in dict.fromkeys(job.name for job in jobs):
        folders = [job.folder for job in jobs if job.name == name]
        kinds.append(
            aggregate(name, [found for folder in folders if (found := finished(folder)) is not None])
        )
    out.mkdir(parents=True, exist_ok=True)
    replace_file(out / "campaign.md", markdown(kinds).encode())
    replace_file(out / "campaign.csv", comma_separated(kinds).encode())
    content = json.dumps([asdict(kind) for kind in kinds], indent=2) + "\n"
    replace_file(out / "campaign.json", content.encode())
    return kinds


def read_settings(path: Path) -> RunSettings:
    """Settings from a file: as a campaign writes them, or out of a summary.json. Raises ExperimentError."""
    try:
        found = parse_mapping(path.read_bytes())
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror}") from None
    if found is None:
        raise ExperimentError(f"{path} is not JSON; allowed: a settings file or a summary.json")
    return RunSettings.parse(found.get("settings", found))
