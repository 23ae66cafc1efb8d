"""The film in the forms that other players want: HLS playlists, a plain MP4, a plain WebM.

Each is made from the finished DASH folder when a page first wants it, into a cache folder of its own
that appears by one rename. HLS and MP4 hold the same pictures and sound, bit for bit; WebM's are encoded
anew, cheaply, and repeated by stream copy.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from steerline_testbed.browser.playlists import write_playlists
from steerline_testbed.experiment.errors import MediaError, ToolMissingError
from steerline_testbed.experiment.media import Progress, default_cache, only_one, run_ffmpeg
from steerline_testbed.experiment.media_recipe import FRAMES_PER_SECOND, Recipe

# Raise it when the way of making changes: an old cache is then not used.
FILMS_VERSION = 2
# Of the WebM so much is encoded and repeated: VP8 takes a processor about as long as it plays.
WEBM_LOOP_S = 24
# What each page fetches below /video/ beside the DASH folder.
FILM_OF_PAGE: Mapping[str, str] = {"hlsjs": "hls", "mp4": "mp4", "webm": "webm"}
_ROOM = 2.5


def ensure_film(
    page: str, dash: Path, recipe: Recipe, cache: Path | None = None, progress: Progress | None = None
) -> Path | None:
    """The folder of what `page` wants beside the DASH folder `dash`; None when it wants nothing more.

    Raises ToolMissingError without ffmpeg, MediaError when it cannot be made.
    """
    kind = FILM_OF_PAGE.get(page)
    if kind is None:
        return None
    cache = cache or default_cache()
    cache.mkdir(parents=True, exist_ok=True)
    name = f"{recipe.key}-{kind}-{FILMS_VERSION}"
    target = cache / name
    if target.is_dir():
        return target
    if shutil.which("ffmpeg") is None:
        raise ToolMissingError("ffmpeg", "install it (Debian, Ubuntu: apt-get install ffmpeg)")
    with only_one(cache / f".{name}.lock", progress):
        if target.is_dir():
            return target
        _assert_room(kind, dash, cache)
        work = Path(tempfile.mkdtemp(prefix=f".making-{name}-", dir=cache))
        try:
            if progress is not None:
                progress(f"making the film for {page}", 0.0)
            out = work / "out"
            out.mkdir()
            _MAKERS[kind](dash, recipe, work, out)
            out.rename(target)
            return target
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _assert_room(kind: str, dash: Path, cache: Path) -> None:
    if kind == "hls":
        return
    needed = int(_ROOM * sum(path.stat().st_size for path in dash.glob("seg-0-*.m4s")))
    free = shutil.disk_usage(cache).free
    if free < needed:
        raise MediaError(
            f"{cache} has {free // 2**20} MiB free; making the film needs {needed // 2**20 + 1} MiB"
        )


def _make_hls(dash: Path, recipe: Recipe, _work: Path, out: Path) -> None:
    write_playlists(dash, recipe, out)


def _make_mp4(dash: Path, recipe: Recipe, work: Path, out: Path) -> None:
    sound = len(recipe.rates)
    inputs: list[str | Path] = []
    for stream in (0, sound):
        whole = work / f"{stream}.mp4"
        with whole.open("wb") as joined:
            for part in (dash / f"init-{stream}.m4s", *sorted(dash.glob(f"seg-{stream}-*.m4s"))):
                joined.write(part.read_bytes())
        inputs += ["-i", whole]
    run_ffmpeg(
        *inputs, f"-map 0:v -map 1:a -c copy -t {recipe.duration_s} -movflags +faststart", out / "film.mp4"
    )


def _make_webm(_dash: Path, recipe: Recipe, work: Path, out: Path) -> None:
    rate = recipe.rates[0]
    kbps = f"{rate.mean_bps // 1000}k"
    loop, sound = work / "loop.webm", work / "sound.webm"
    run_ffmpeg(
        f"-f lavfi -i testsrc2=size={rate.width}x{rate.height}:rate={FRAMES_PER_SECOND}",
        f"-vf noise=alls={rate.noise}:allf=t:all_seed=1,setsar=1 -t {min(WEBM_LOOP_S, recipe.loop_s)}",
        f"-c:v libvpx -deadline realtime -cpu-used 16 -threads 2 -pix_fmt yuv420p -g {2 * FRAMES_PER_SECOND}",
        f"-b:v {kbps} -minrate {kbps} -maxrate {kbps} -bufsize {kbps} -qmin 2 -qmax 56",
        loop,
    )
    run_ffmpeg(
        "-f lavfi -i anoisesrc=color=pink:amplitude=0.3:sample_rate=48000:seed=1",
        f"-t {recipe.duration_s} -ac 2 -c:a libopus -compression_level 0 -b:a {recipe.audio_bps}",
        sound,
    )
    # The index in front: a browser asks for it before it seeks, and for the end of the file otherwise.
    run_ffmpeg(
        "-stream_loop -1 -i",
        loop,
        "-i",
        sound,
        f"-map 0:v -map 1:a -c copy -t {recipe.duration_s} -cues_to_front 1",
        out / "film.webm",
    )


_MAKERS: Mapping[str, Callable[[Path, Recipe, Path, Path], None]] = {
    "hls": _make_hls,
    "mp4": _make_mp4,
    "webm": _make_webm,
}
