"""The film's further forms are valid, long enough and quick to find again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from steerline_testbed.browser.films import ensure_film
from steerline_testbed.experiment.errors import MediaError, ToolMissingError

from .site import SMALL


def probe(film: Path) -> dict[str, Any]:
    """Its streams' codecs and sizes, and its length."""
    show = "format=duration,bit_rate:stream=codec_name,height"
    command = ["ffprobe", "-v", "error", "-of", "json", "-show_entries", show, str(film)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)


@pytest.mark.parametrize(("name", "codecs"), [("film.mp4", ["h264", "aac"]), ("film.webm", ["vp8", "opus"])])
def test_a_plain_file_has_the_film_s_length_picture_sound_and_rate(
    films: Path, name: str, codecs: list[str]
) -> None:
    """480 lines, both codecs, the film's length within 0.1 s and the top quality's rate within a fifth."""
    facts = probe(films / name)
    assert [one["codec_name"] for one in facts["streams"]] == codecs
    assert facts["streams"][0]["height"] == 480
    assert float(facts["format"]["duration"]) == pytest.approx(SMALL.duration_s, abs=0.1)
    wanted = SMALL.rates[0].mean_bps + SMALL.audio_bps
    assert float(facts["format"]["bit_rate"]) == pytest.approx(wanted, rel=0.2)


def test_a_plain_file_can_be_played_and_sought_from_its_beginning(films: Path) -> None:
    """Its index lies before its media."""
    mp4, webm = (films / "film.mp4").read_bytes(), (films / "film.webm").read_bytes()
    assert 0 < mp4.index(b"moov") < mp4.index(b"mdat")
    cues, cluster = bytes.fromhex("1c53bb6b"), bytes.fromhex("1f43b675")
    # The seek head in front names the cues, too: it is their second mention that is they.
    assert webm.index(cues, webm.index(cues) + 4) < webm.index(cluster)


def test_playlists_name_all_segments_and_add_up_to_the_film(films: Path, dash: Path) -> None:
    """Each stream's segments exist in the DASH folder, in order, and their lengths make the film's."""
    master = (films / "master.m3u8").read_text()
    assert "RESOLUTION=854x480" in master and "RESOLUTION=640x360" in master and 'GROUP-ID="sound"' in master
    for stream in range(3):
        lines = (films / f"stream-{stream}.m3u8").read_text().splitlines()
        lengths = [float(line[8:-1]) for line in lines if line.startswith("#EXTINF:")]
        names = [line for line in lines if not line.startswith("#")]
        there = sorted(path.name for path in dash.glob(f"seg-{stream}-*.m4s"))
        assert names == there[: len(names)] and len(names) >= SMALL.duration_s / 2
        assert sum(lengths) == pytest.approx(SMALL.duration_s, abs=0.05)
        assert lines[-1] == "#EXT-X-ENDLIST"


def test_the_second_time_is_found_and_the_headless_player_s_cache_is_left_alone(
    films: Path, dash: Path, cache: Path
) -> None:
    """Films lie in folders of their own; nothing half-made stays; a page that wants no more gets none."""
    del films
    before = sorted(path.name for path in cache.iterdir())
    found = ensure_film("mp4", dash, SMALL, cache)
    assert found is not None and found.name.startswith(f"{SMALL.key}-mp4-")
    assert ensure_film("dashjs", dash, SMALL, cache) is None
    assert sorted(path.name for path in cache.iterdir()) == before
    assert not any(name.startswith(".making") for name in before)


def test_a_missing_ffmpeg_is_named(dash: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do about it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissingError, match="apt-get install ffmpeg"):
        ensure_film("mp4", dash, SMALL, tmp_path)


def test_a_broken_dash_folder_is_named_and_leaves_nothing(dash: Path, tmp_path: Path) -> None:
    """A segment that is none: the error names it, and no folder appears."""
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in dash.iterdir():
        (broken / path.name).hardlink_to(path)
    (broken / "seg-0-00003.m4s").unlink()
    (broken / "seg-0-00003.m4s").write_text("nothing")
    with pytest.raises(MediaError, match=r"seg-0-00003\.m4s has no tfdt box"):
        ensure_film("hlsjs", broken, SMALL, tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []
