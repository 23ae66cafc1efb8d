"""The time series of a run as Parquet and CSV, one file of each per table (record.schema.json)."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from steerline_testbed.experiment.atomic import replace_file
from steerline_testbed.experiment.series import (
    TABLES,
    DecisionRow,
    DownloadSample,
    LineSample,
    Recording,
    Row,
    Sample,
)

# pyarrow ships no types.
_arrow: Any = importlib.import_module("pyarrow")
_parquet: Any = importlib.import_module("pyarrow.parquet")


def rows_of(recording: Recording) -> dict[str, list[Row]]:
    """The rows of each table, by time."""
    sources: Mapping[str, Sequence[Any]] = {
        "players": recording.samples,
        "lines": recording.lines,
        "downloads": recording.downloads,
        "decisions": recording.decisions,
    }
    return {
        name: sorted(
            ({column: asdict(one)[column] for column in TABLES[name]} for one in source),
            key=lambda row: row["time_s"],
        )
        for name, source in sources.items()
    }


def write_tables(recording: Recording, folder: Path) -> None:
    """Writes `<table>.parquet` and `<table>.csv`, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in rows_of(recording).items():
        columns = TABLES[name]
        schema = _arrow.schema([(column, getattr(_arrow, kind)()) for column, kind in columns.items()])
        table = _arrow.Table.from_pylist(rows, schema=schema)
        sink = io.BytesIO()
        _parquet.write_table(table, sink)
        replace_file(folder / f"{name}.parquet", sink.getvalue())
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, fieldnames=list(columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        replace_file(folder / f"{name}.csv", text.getvalue().encode())


def read_tables(folder: Path) -> Recording:
    """What `write_tables` wrote, but for what only the raw records hold (pages, lives of downloads)."""

    def rows(name: str) -> list[dict[str, Any]]:
        return _parquet.read_table(folder / f"{name}.parquet").to_pylist()

    return Recording(
        samples=[Sample(**row) for row in rows("players")],
        lines=[LineSample(**row) for row in rows("lines")],
        downloads=[DownloadSample(**row) for row in rows("downloads")],
        decisions=[DecisionRow(**row) for row in rows("decisions")],
    )
