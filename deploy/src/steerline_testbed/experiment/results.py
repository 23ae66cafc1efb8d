"""The folder of one run: who may write there, and how everything is written into it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steerline_testbed.experiment import plots, summary, tables
from steerline_testbed.experiment.atomic import replace_file
from steerline_testbed.experiment.errors import ExperimentError
from steerline_testbed.experiment.jsons import parse_mapping
from steerline_testbed.experiment.series import Recording
from steerline_testbed.experiment.settings import RunSettings

# What a run writes into its folder; nothing else there is ever touched.
LOCK = ".running"
RESERVE = ".reserved-room"
RESERVE_BYTES = 6 << 20
OURS = ("summary.json", "raw", "series", "plots", "logs", RESERVE)


def finished(out: Path) -> Mapping[str, Any] | None:
    """The summary of a complete run in this folder, or None."""
    try:
        found = parse_mapping((out / "summary.json").read_bytes())
    except OSError:
        return None
    return found if found is not None and found.get("state") == "complete" else None


def assert_free(out: Path, force: bool) -> None:
    """Raises ExperimentError when the folder holds a complete run, or is not a folder."""
    if out.exists() and not out.is_dir():
        raise ExperimentError(f"{out} is a file; allowed: a folder, new or of an earlier run")
    if not force and finished(out) is not None:
        raise ExperimentError(
            f"{out} already holds a complete run; allowed: another --out, --resume to keep it, "
            "--force to replace it"
        )


@contextmanager
def owned(out: Path) -> Generator[None]:
    """The folder is this process's alone meanwhile. Raises ExperimentError when another run writes there."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / LOCK).open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExperimentError(f"another run is writing to {out}; allowed: a folder of its own") from None
        try:
            yield
        finally:
            (out / LOCK).unlink(missing_ok=True)


def clear(out: Path) -> None:
    """Removes what an earlier run left in the folder, and nothing else."""
    for name in OURS:
        path = out / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def reserve_room(out: Path) -> None:
    """Takes room on the disk that `release_room` gives back, for the results on a disk that fills up."""
    with (out / RESERVE).open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)


def release_room(out: Path) -> None:
    """Gives the reserved room back."""
    (out / RESERVE).unlink(missing_ok=True)


def keep_logs(directory: Path, logs: Path) -> None:
    """Copies the logs and settings files of a run's directory, which is about to go."""
    logs.mkdir(parents=True, exist_ok=True)
    for path in sorted(directory.iterdir()):
        if path.is_file() and path.suffix in (".log", ".toml"):
            shutil.copyfile(path, logs / path.name)


def write_results(
    out: Path, settings: RunSettings, recording: Recording, known: summary.Circumstances
) -> Mapping[str, Any]:
    """Writes series, plots and at last summary.json; each file whole or not at all.

    Raises ExperimentError when the disk is full: what was written before stays, and says so.
    """
    built = summary.build(settings, recording, known)
    steps: list[tuple[str, Callable[[], None]]] = [
        ("the time series", lambda: tables.write_tables(recording, out / "series")),
        ("summary.json", lambda: _write_summary(out, built)),
        ("the plots", lambda: plots.write_plots(built, recording, out / "plots")),
    ]
    if known.failure:
        # A complete summary vouches for the series, so it comes after them; a partial one vouches for
        # nothing, and comes first because there may be room for little.
        steps[0], steps[1] = steps[1], steps[0]
    for what, step in steps:
        try:
            step()
        except OSError as error:
            raise ExperimentError(
                f"{what} of {out} could not be written: {error.strerror or error}; the records below "
                f"{out / 'raw'} are kept"
            ) from None
    return built


def _write_summary(out: Path, built: Mapping[str, Any]) -> None:
    summary.validate(built)
    replace_file(out / "summary.json", (json.dumps(built, indent=2) + "\n").encode())
