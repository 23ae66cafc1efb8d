"""Many runs: the plan, the statistics, and the tables."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from steerline_testbed.experiment import aggregate, campaign, results, summary
from steerline_testbed.experiment.errors import ExperimentError

from .handmade import circumstances, settings_of_run, starving_run


def test_the_interval_is_students() -> None:
    """1, 2, 3: mean 2, standard deviation 1, t 4.303 over the root of 3."""
    mean, half = aggregate.interval([1.0, 2.0, 3.0])
    assert mean == 2 and half == pytest.approx(4.303 / math.sqrt(3))
    assert aggregate.interval([5.0]) == (5.0, None)


def a_summary(**changes: object) -> dict[str, Any]:
    """A summary of the run made by hand."""
    return summary.build(settings_of_run(**changes), starving_run(), circumstances())


def test_runs_that_do_not_count_do_not_enter_the_figures() -> None:
    """But they are counted beside."""
    good = a_summary()
    bad = {**good, "valid": False, "lines": {**good["lines"], "rho": 99.0}}
    kind = aggregate.aggregate("single", [good, good, bad])
    assert (kind.runs, kind.valid) == (3, 2)
    assert kind.cells["rho"].greatest == pytest.approx(good["lines"]["rho"])


def test_a_figure_that_some_runs_lack_says_in_how_many() -> None:
    """A buffer that became empty in one run of two is a time, and `in 1 of 2`."""
    cell = aggregate.Cell(1, 110.0, None, 110.0, 110.0)
    assert aggregate.cell_text(cell, 2, 1) == "110.0 (in 1 of 2)"
    assert aggregate.cell_text(aggregate.Cell(3, 0.98765, 0.00123, 0.0, 1.0), 3, 3) == "0.988 ± 0.001"
    assert aggregate.cell_text(aggregate.Cell(0, None, None, None, None), 3, 3) == "–"


def test_the_plan_goes_seed_by_seed() -> None:
    """An early end leaves every kind with some runs."""
    runs = [{"name": "a", "flows": 1}, {"name": "b", "strategy": "single", "seeds": [7]}]
    jobs = campaign.plan(runs, Path("out"))
    assert [(job.name, job.settings.seed) for job in jobs][:4] == [("a", 1), ("b", 7), ("a", 2), ("a", 3)]
    assert jobs[1].folder == Path("out/b/seed-7")


@pytest.mark.parametrize(
    "runs",
    [
        [{"name": "a"}, {"name": "a"}],
        [{"name": "../a"}],
        [{"name": "a", "flows": -1}],
        [{"name": "a", "x": 1}],
    ],
)
def test_a_wrong_plan_is_refused_before_it_begins(runs: list[dict[str, Any]]) -> None:
    """A name used twice, a name that is no folder, a wrong setting."""
    with pytest.raises(ExperimentError):
        campaign.plan(runs, Path("out"))


def test_the_presets_are_right() -> None:
    """Each of their runs is a valid run."""
    for runs in campaign.PRESETS.values():
        assert campaign.plan(runs, Path("out"))


def test_a_campaign_file_has_defaults_and_runs(tmp_path: Path) -> None:
    """Runs take what they do not say from the defaults."""
    path = tmp_path / "campaign.toml"
    path.write_text('[defaults]\nflows = 50\n[[run]]\nname = "a"\n[[run]]\nname = "b"\nflows = 20\n')
    assert [run["flows"] for run in campaign.load_runs(path)] == [50, 20]
    path.write_text("[[runs]]\nflows = 50\n")
    with pytest.raises(ExperimentError, match=r"\[\[run\]\]"):
        campaign.load_runs(path)


def test_complete_runs_are_kept_and_tabled(tmp_path: Path) -> None:
    """A campaign whose runs are all there starts nothing and writes its three tables."""
    jobs = campaign.plan([{"name": "single", "strategy": "single"}], tmp_path, [1, 2])
    for job in jobs:
        results.write_results(job.folder, settings_of_run(), starving_run(), circumstances())
    said: list[str] = []
    (kind,) = campaign.run_campaign(jobs, 2, tmp_path, said.append)
    assert said == ["2 runs, 2 complete before"]
    assert (kind.valid, kind.runs) == (2, 2)
    assert "| runs that count | 2 of 2 |" in (tmp_path / "campaign.md").read_text()
    assert (tmp_path / "campaign.csv").read_text().startswith("name,figure,unit,n,mean")
    assert json.loads((tmp_path / "campaign.json").read_text())[0]["name"] == "single"


def test_a_summary_is_also_a_settings_file(tmp_path: Path) -> None:
    """A run can be repeated from what it left."""
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(a_summary(seed=9)))
    assert campaign.read_settings(path) == settings_of_run(seed=9)
    path.write_text("rubbish")
    with pytest.raises(ExperimentError, match="not JSON"):
        campaign.read_settings(path)
