"""summary.json, the tables and the plots of a run made by hand."""

from __future__ import annotations

import csv
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from steerline_testbed.experiment import results, summary, tables
from steerline_testbed.experiment.errors import ExperimentError
from steerline_testbed.experiment.series import TABLES, Recording

from .handmade import circumstances, settings_of_run, starving_run


def test_a_summary_keeps_its_schema() -> None:
    """The summary of a whole run passes, with the figures that the series imply."""
    built = summary.build(settings_of_run(), starving_run(), circumstances())
    summary.validate(built)
    assert built["state"] == "complete" and built["valid"]
    assert built["lines"]["rho"] == pytest.approx((10 + 4 * 0.5) / 50, rel=0.01)
    assert built["downloads"]["mean_bps"] == pytest.approx(450e3, rel=0.01)
    assert built["videos"][0]["buffer"]["first_empty_at_s"] == pytest.approx(110, abs=1)
    assert built["videos"][0]["play"]["stall_count"] > 0


def test_a_summary_of_nothing_keeps_its_schema_too() -> None:
    """A run that ended before anything was recorded gives nulls, and says that it does not count."""
    built = summary.build(settings_of_run(), Recording(), circumstances(3.0, "controller ended"))
    summary.validate(built)
    assert built["state"] == "partial" and not built["valid"]
    assert any("controller ended" in reason for reason in built["invalid_because"])


def test_the_schema_refuses_what_it_does_not_know() -> None:
    """A misspelt figure is named."""
    built = summary.build(settings_of_run(), starving_run(), circumstances())
    with pytest.raises(ExperimentError, match="rhoo"):
        summary.validate({**built, "rhoo": 1.0})


def test_a_wrong_congestion_control_makes_a_run_invalid() -> None:
    """No experiment means anything unless the congestion control is known."""
    built = summary.build(settings_of_run(congestion_control="bbr"), starving_run(), circumstances())
    assert not built["valid"] and "cubic" in " ".join(built["invalid_because"])


def test_a_machine_that_was_too_busy_to_look_makes_a_run_invalid() -> None:
    """A gap of more than 3 s in the samples of the lines is named."""
    recording = starving_run()
    recording.lines = [one for one in recording.lines if not 100 < one.time_s < 104]
    built = summary.build(settings_of_run(), recording, circumstances())
    assert not built["valid"] and "too busy" in " ".join(built["invalid_because"])


def test_parquet_and_csv_hold_the_same_rows(tmp_path: Path) -> None:
    """Each table is written twice, with the columns of the schema in their order."""
    recording = starving_run()
    tables.write_tables(recording, tmp_path)
    parquet: Any = importlib.import_module("pyarrow.parquet")
    for name, columns in TABLES.items():
        table = parquet.read_table(tmp_path / f"{name}.parquet")
        with (tmp_path / f"{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert table.column_names == list(columns) == list(rows[0])
        assert table.num_rows == len(rows) > 0
        assert [float(row["time_s"]) for row in rows] == table.column("time_s").to_pylist()


def test_rows_keep_the_record_schema() -> None:
    """The schema describes every column that is written, and each row of a run passes it."""
    jsonschema: Any = importlib.import_module("jsonschema")
    schema = json.loads((summary.schema_folder() / "record.schema.json").read_text())
    for name, rows in tables.rows_of(starving_run()).items():
        definition = schema["$defs"][name]
        assert list(definition["properties"]) == list(TABLES[name])
        checker = jsonschema.Draft202012Validator(definition)
        for row in rows[:200]:
            checker.validate(row)


def test_results_are_a_folder_that_is_not_overwritten_by_accident(tmp_path: Path) -> None:
    """A complete run is refused, kept on resume, replaced by force; plots are there."""
    results.write_results(tmp_path, settings_of_run(), starving_run(), circumstances())
    assert results.finished(tmp_path) is not None
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == [
        f"{name}.{kind}" for name in ("buffer", "cdf", "lines") for kind in ("png", "svg")
    ]
    with pytest.raises(ExperimentError, match="--resume"):
        results.assert_free(tmp_path, force=False)
    results.assert_free(tmp_path, force=True)


def test_a_partial_run_may_be_run_again(tmp_path: Path) -> None:
    """Only a complete run is protected."""
    results.write_results(tmp_path, settings_of_run(), starving_run(), circumstances(50.0, "interrupted"))
    assert results.finished(tmp_path) is None
    results.assert_free(tmp_path, force=False)


def test_a_folder_belongs_to_one_run_at_a_time(tmp_path: Path) -> None:
    """A second run is refused while the first writes, and loses nothing of it; afterwards it may."""
    with results.owned(tmp_path):
        (tmp_path / "raw").mkdir()
        with pytest.raises(ExperimentError, match="another run"), results.owned(tmp_path):
            pass
        assert (tmp_path / "raw").is_dir()
    with results.owned(tmp_path):
        pass


def test_clearing_leaves_the_files_of_others(tmp_path: Path) -> None:
    """What the run did not make stays."""
    (tmp_path / "notes.txt").write_text("mine")
    results.write_results(tmp_path, settings_of_run(), starving_run(), circumstances())
    results.clear(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_full_disk_is_named_and_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says which file and where the records are; the summary of before is untouched."""
    (tmp_path / "summary.json").write_text("before")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("steerline_testbed.experiment.atomic.os.fsync", full)
    with pytest.raises(ExperimentError, match=r"No space left on device.*raw"):
        results.write_results(tmp_path, settings_of_run(), starving_run(), circumstances())
    assert (tmp_path / "summary.json").read_text() == "before"
    assert not list(tmp_path.rglob("*.new"))
