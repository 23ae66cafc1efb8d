"""Real video in a cache: H.264 and AAC as DASH in 2-s segments, longer than any experiment.

A minute of noisy test picture is encoded segment by segment (so that each has the rate it shall
have), then repeated by stream copy with running timestamps: browsers play it as one film. The
folder appears in the cache by one rename, so a half-made one is never used.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from steerline_testbed.experiment.errors import MediaError, ToolMissingError
from steerline_testbed.experiment.media_recipe import FRAMES_PER_SECOND, SEGMENT_S, Recipe, VideoRate

Progress = Callable[[str, float], None]
"""Told what is being done and how much of it is done (0 to 1)."""

MEAN_TOLERANCE = 0.03
_ENCODING_PASSES = 4
_NEEDED_BYTES_PER_MEDIA_BIT = 0.125 * 1.3


def default_cache() -> Path:
    """`$XDG_CACHE_HOME/steerline/media`, else `~/.cache/steerline/media`."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "steerline" / "media"


def _tell_nobody(what: str, done: float) -> None:
    del what, done


def find(recipe: Recipe, cache: Path) -> Path | None:
    """The finished folder of this recipe, or None. Never a half-made one."""
    folder = cache / recipe.key
    return folder if (folder / "media.json").is_file() and (folder / "manifest.mpd").is_file() else None


def ensure(recipe: Recipe, cache: Path | None = None, progress: Progress | None = None) -> Path:
    """The folder with `manifest.mpd`, segments and `media.json`; made when it is not there yet.

    Raises ToolMissingError without ffmpeg, MediaError when encoding fails or misses its rate.
    """
    cache = cache or default_cache()
    tell = progress or _tell_nobody
    found = find(recipe, cache)
    if found is not None:
        return found
    if shutil.which("ffmpeg") is None:
        raise ToolMissingError("ffmpeg", "install it (Debian, Ubuntu: apt-get install ffmpeg)")
    cache.mkdir(parents=True, exist_ok=True)
    _assert_room(recipe, cache)
    with only_one(cache / f".{recipe.key}.lock", progress):
        found = find(recipe, cache)  # somebody else may have made it while we waited
        if found is not None:
            return found
        work = Path(tempfile.mkdtemp(prefix=f".making-{recipe.key}-", dir=cache))
        try:
            finished = _make(recipe, work, tell)
            target = cache / recipe.key
            if target.exists():  # without media.json: not ours to trust
                shutil.rmtree(target)
            finished.rename(target)
            return target
        finally:
            shutil.rmtree(work, ignore_errors=True)


def describe(folder: Path) -> dict[str, object]:
    """`media.json` of a finished folder: what was measured of the segments."""
    return json.loads((folder / "media.json").read_text())


def _assert_room(recipe: Recipe, cache: Path) -> None:
    bits = recipe.duration_s * (sum(rate.mean_bps for rate in recipe.rates) + recipe.audio_bps)
    needed = int(bits * _NEEDED_BYTES_PER_MEDIA_BIT * 2)
    free = shutil.disk_usage(cache).free
    if free < needed:
        raise MediaError(
            f"{cache} has {free // 2**20} MiB free; making the video needs {needed // 2**20 + 1} MiB"
        )


@contextmanager
def only_one(lock: Path, progress: Progress | None) -> Generator[None]:
    """Holds the lock; waits, and says so, while another process makes the same."""
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if progress is not None:
                progress("waiting for another run that makes the video", 0.0)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _make(recipe: Recipe, work: Path, tell: Progress) -> Path:
    loops = [_loop(recipe, rate, work, tell) for rate in recipe.rates]
    tell("encoding audio", 0.0)
    audio = work / "audio.mp4"
    run_ffmpeg(
        "-f lavfi -i anoisesrc=color=pink:amplitude=0.3:sample_rate=48000:seed=1",
        f"-t {recipe.duration_s} -ac 2 -c:a aac -b:a {recipe.audio_bps}",
        audio,
    )
    tell("cutting segments", 0.0)
    out = work / "out"
    out.mkdir()
    inputs: list[str | Path] = []
    for loop in loops:
        inputs += ["-stream_loop -1 -i", loop]
    maps = " ".join(f"-map {index}:v" for index in range(len(loops)))
    run_ffmpeg(
        *inputs,
        "-i",
        audio,
        f"{maps} -map {len(loops)}:a -c copy -t {recipe.duration_s} -f dash -seg_duration {SEGMENT_S}",
        "-use_template 1 -use_timeline 0 -dash_segment_type mp4",
        "-adaptation_sets",
        Whole("id=0,streams=v id=1,streams=a"),
        "-init_seg_name init-$RepresentationID$.m4s -media_seg_name seg-$RepresentationID$-$Number%05d$.m4s",
        out / "manifest.mpd",
    )
    facts = _measure(recipe, out)
    (out / "media.json").write_text(json.dumps(facts, indent=2) + "\n")
    return out


def _loop(recipe: Recipe, rate: VideoRate, work: Path, tell: Progress) -> Path:
    """Encodes the repeated part, each segment by itself, until the measured rates are the asked ones."""
    targets = recipe.segment_targets_bps(rate)
    folder = work / f"{rate.height}"
    folder.mkdir()
    asked = list(targets)
    pieces = [folder / f"{index}.h264" for index in range(len(targets))]
    for attempt in range(1, _ENCODING_PASSES + 1):
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            work_list = [
                pool.submit(_encode_segment, rate, index, asked[index], piece)
                for index, piece in enumerate(pieces)
            ]
            for done, future in enumerate(as_completed(work_list), start=1):
                future.result()
                tell(f"encoding {rate.height}p, pass {attempt}", done / len(pieces))
        got = [piece.stat().st_size * 8 / SEGMENT_S for piece in pieces]
        if abs(statistics.fmean(got) / statistics.fmean(targets) - 1) < MEAN_TOLERANCE / 3:
            break
        # The encoder's rate control errs by a steady factor on pieces this short: ask for less, or more.
        asked = [ask * want / have for ask, want, have in zip(asked, targets, got, strict=True)]
    # Pieces are bare H.264 and joined as bytes: a container per piece would add a frame at each seam.
    bare = work / f"{rate.height}.h264"
    with bare.open("wb") as joined:
        for piece in pieces:
            joined.write(piece.read_bytes())
    looped = work / f"{rate.height}.mp4"
    run_ffmpeg(f"-f h264 -framerate {FRAMES_PER_SECOND} -i", bare, "-c copy", looped)
    return looped


def _encode_segment(rate: VideoRate, index: int, bps: float, path: Path) -> None:
    frames = FRAMES_PER_SECOND * SEGMENT_S
    kbps = f"{max(8, round(bps / 1000))}k"
    run_ffmpeg(
        f"-f lavfi -ss {index * SEGMENT_S}",
        f"-i testsrc2=size={rate.width}x{rate.height}:rate={FRAMES_PER_SECOND}",
        f"-vf noise=alls={rate.noise}:allf=t:all_seed={index + 1},setdar=16/9 -frames:v {frames}",
        "-c:v libx264 -preset superfast -profile:v main -level 3.1 -pix_fmt yuv420p",
        f"-bf 0 -g {frames} -threads 1 -b:v {kbps} -maxrate {kbps} -bufsize {kbps}",
        # stitchable: the same parameter sets in each piece, so that they join into one stream.
        "-x264-params stitchable=1:scenecut=0 -an -f h264",
        path,
    )


def _measure(recipe: Recipe, out: Path) -> dict[str, object]:
    """Sizes and rates of the segments as they lie on the disk. Raises MediaError off the asked rate."""
    expected = recipe.duration_s // SEGMENT_S
    streams: list[dict[str, object]] = []
    for index in range(len(recipe.rates) + 1):
        files = sorted(out.glob(f"seg-{index}-*.m4s"))
        sizes = [path.stat().st_size for path in files]
        if not expected <= len(sizes) <= expected + 1:
            raise MediaError(f"stream {index} has {len(sizes)} segments; allowed: {expected}")
        bps = [size * 8 / SEGMENT_S for size in sizes[:expected]]
        mean, deviation = statistics.fmean(bps), statistics.pstdev(bps)
        facts: dict[str, object] = {
            "representation": str(index),
            "mean_bps": round(mean),
            "deviation_bps": round(deviation),
            "segment_bytes": sizes,
        }
        if index < len(recipe.rates):
            rate = recipe.rates[index]
            facts |= {"kind": "video", "width": rate.width, "height": rate.height}
            if abs(mean / rate.mean_bps - 1) > MEAN_TOLERANCE:
                raise MediaError(
                    f"{rate.height}p came out at {mean / 1e6:.3f} Mbps; allowed: "
                    f"{rate.mean_bps / 1e6:.3f} Mbps within {MEAN_TOLERANCE:.0%}"
                )
        else:
            facts["kind"] = "audio"
        streams.append(facts)
    return {
        "key": recipe.key,
        "recipe": asdict(recipe),
        "segment_s": SEGMENT_S,
        "duration_s": recipe.duration_s,
        "streams": streams,
    }


class Whole(str):
    """An argument with a space in it."""


def run_ffmpeg(*parts: str | Path) -> None:
    """Runs ffmpeg. A text is split at its spaces; a path or a Whole is one argument. Raises MediaError."""
    arguments: list[str] = []
    for part in parts:
        arguments += [str(part)] if isinstance(part, Path | Whole) else part.split()
    done = subprocess.run(
        ["ffmpeg", "-nostdin", "-v", "error", "-y", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise MediaError(f"ffmpeg failed (exit status {done.returncode}): {tail}")
