"""The video's cache: real ffmpeg on a film of a few seconds, and nothing half-made."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steerline_testbed.experiment import media
from steerline_testbed.experiment.errors import MediaError, ToolMissingError
from steerline_testbed.experiment.media_recipe import Recipe, VideoRate

SMALL = Recipe(
    rates=(VideoRate(320, 180, 400_000, 40_000, 14), VideoRate(160, 90, 120_000, 10_000, 10)),
    loop_s=4,
    duration_s=10,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small film, made once."""
    return media.ensure(SMALL, tmp_path_factory.mktemp("media"))


def test_the_film_has_the_rates_it_shall_have(made: Path) -> None:
    """media.json holds what was measured of the segments on the disk, within 3 % of what was asked."""
    facts = media.describe(made)
    streams: Any = facts["streams"]
    assert [stream["kind"] for stream in streams] == ["video", "video", "audio"]
    for stream, rate in zip(streams, SMALL.rates, strict=False):
        assert stream["mean_bps"] == pytest.approx(rate.mean_bps, rel=media.MEAN_TOLERANCE)
        on_disk = [path.stat().st_size for path in sorted(made.glob(f"seg-{stream['representation']}-*.m4s"))]
        assert stream["segment_bytes"] == on_disk and len(on_disk) == 5


def test_the_loop_has_no_seam(made: Path) -> None:
    """Timestamps run on over the repeats: a frame each 40 ms, a key frame each 2 s."""
    film = made.parent / "joined.mp4"
    parts = [made / "init-0.m4s", *sorted(made.glob("seg-0-*.m4s"))]
    film.write_bytes(b"".join(part.read_bytes() for part in parts))
    shown = subprocess.run(
        ["ffprobe", "-v", "error", "-show_entries", "packet=pts_time,flags", "-of", "csv=p=0", str(film)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    times = [float(line.split(",")[0]) for line in shown]
    keys = [float(line.split(",")[0]) for line in shown if "K" in line.split(",")[1]]
    assert times == pytest.approx([frame * 0.04 for frame in range(250)], abs=1e-3)
    assert keys == pytest.approx([0, 2, 4, 6, 8], abs=1e-3)


def test_the_second_time_is_quick_and_changes_nothing(made: Path) -> None:
    """An existing film is found, not made again."""
    before = (made / "media.json").stat().st_mtime_ns
    told: list[str] = []
    assert media.ensure(SMALL, made.parent, lambda *words: told.append(str(words))) == made
    assert (made / "media.json").stat().st_mtime_ns == before and not told


def _refusing(call: int, real: Callable[..., None]) -> Callable[..., None]:
    seen = 0

    def refuse(*parts: str | Path) -> None:
        nonlocal seen
        seen += 1
        if seen >= call:
            raise MediaError("ffmpeg failed (made to)")
        real(*parts)

    return refuse


def test_a_failure_leaves_no_half_made_film(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When encoding fails in the middle nothing is found afterwards, and nothing lies about."""
    monkeypatch.setattr(media, "run_ffmpeg", _refusing(3, media.run_ffmpeg))
    with pytest.raises(MediaError):
        media.ensure(SMALL, tmp_path)
    assert media.find(SMALL, tmp_path) is None
    assert [path.name for path in tmp_path.iterdir()] == [f".{SMALL.key}.lock"]


def test_a_folder_without_its_facts_is_not_a_film(made: Path, tmp_path: Path) -> None:
    """What is in the cache without media.json (somebody copied half of it) is not used."""
    folder = tmp_path / SMALL.key
    folder.mkdir()
    (folder / "manifest.mpd").write_bytes((made / "manifest.mpd").read_bytes())
    assert media.find(SMALL, tmp_path) is None


def test_a_missing_ffmpeg_is_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissingError, match="apt-get install ffmpeg"):
        media.ensure(SMALL, tmp_path)


def test_another_recipe_is_another_folder() -> None:
    """A changed length, seed or rate never finds the old film."""
    keys = {SMALL.key, Recipe().key, Recipe(duration_s=902).key, Recipe(seed=2).key}
    assert len(keys) == 4


def test_segment_rates_have_exactly_the_mean_and_deviation_asked() -> None:
    """The loop's targets are drawn from the seed and then fitted."""
    rate = Recipe().rates[0]
    targets = Recipe().segment_targets_bps(rate)
    mean = sum(targets) / len(targets)
    deviation = (sum((target - mean) ** 2 for target in targets) / len(targets)) ** 0.5
    assert (mean, deviation) == (pytest.approx(2.6e6), pytest.approx(250e3))
    assert targets == Recipe().segment_targets_bps(rate)


@pytest.mark.parametrize("length", [0, 3, -2])
def test_a_length_that_is_no_whole_segments_is_refused(length: int) -> None:
    """The allowed range is named."""
    with pytest.raises(ValueError, match="multiple of 2 s"):
        Recipe(duration_s=length)
