"""HLS playlists over the segments of the DASH folder (fragmented MP4)."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, cast

from steerline_testbed.experiment.errors import MediaError
from steerline_testbed.experiment.media import describe
from steerline_testbed.experiment.media_recipe import SEGMENT_S, Recipe

MASTER = "master.m3u8"
_CODECS = "avc1.4d401f,mp4a.40.2"
_TFDT_VERSION_AND_FLAGS = 4


def write_playlists(dash: Path, recipe: Recipe, out: Path) -> None:
    """`master.m3u8` and one playlist per stream; their addresses are those of the DASH folder itself.

    Raises MediaError when a segment is not what it should be.
    """
    streams = cast("list[dict[str, Any]]", describe(dash)["streams"])
    sound = len(recipe.rates)
    audio_bps = int(streams[sound]["mean_bps"])
    lines = [
        "#EXTM3U",
        "#EXT-X-VERSION:7",
        "#EXT-X-INDEPENDENT-SEGMENTS",
        '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="sound",NAME="sound",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",'
        f'URI="stream-{sound}.m3u8"',
    ]
    for index, rate in enumerate(recipe.rates):
        mean = int(streams[index]["mean_bps"]) + audio_bps
        peak = int(max(streams[index]["segment_bytes"]) * 8 / SEGMENT_S) + audio_bps
        lines += [
            f"#EXT-X-STREAM-INF:BANDWIDTH={peak},AVERAGE-BANDWIDTH={mean},"
            f'RESOLUTION={rate.width}x{rate.height},FRAME-RATE=25.000,CODECS="{_CODECS}",AUDIO="sound"',
            f"stream-{index}.m3u8",
        ]
    (out / MASTER).write_text("\n".join(lines) + "\n")
    for index in range(sound + 1):
        (out / f"stream-{index}.m3u8").write_text(_playlist(dash, recipe, index))


def _playlist(dash: Path, recipe: Recipe, index: int) -> str:
    timescale = _timescale(dash / f"init-{index}.m4s")
    parts = sorted(dash.glob(f"seg-{index}-*.m4s"))
    starts_s = [_decode_time(part) / timescale for part in parts]
    ends_s = [*starts_s[1:], float(recipe.duration_s)]
    lines = [
        "#EXTM3U",
        "#EXT-X-VERSION:7",
        f"#EXT-X-TARGETDURATION:{SEGMENT_S + 1}",
        "#EXT-X-PLAYLIST-TYPE:VOD",
        "#EXT-X-MEDIA-SEQUENCE:1",
        f'#EXT-X-MAP:URI="init-{index}.m4s"',
    ]
    for part, start_s, end_s in zip(parts, starts_s, ends_s, strict=True):
        if end_s > start_s:  # sound may end some frames after the film
            lines += [f"#EXTINF:{end_s - start_s:.6f},", part.name]
    return "\n".join([*lines, "#EXT-X-ENDLIST"]) + "\n"


def _timescale(init: Path) -> int:
    body = _box(init, b"mdhd")
    version = body[0]
    return struct.unpack_from(">I", body, 20 if version == 1 else 12)[0]


def _decode_time(segment: Path) -> int:
    body = _box(segment, b"tfdt")
    layout = ">Q" if body[0] == 1 else ">I"
    return struct.unpack_from(layout, body, _TFDT_VERSION_AND_FLAGS)[0]


def _box(path: Path, kind: bytes) -> bytes:
    """The first bytes of the first box of this kind, behind its head. It comes early in these files."""
    with path.open("rb") as file:
        text = file.read(4096)
    at = text.find(kind)
    if at < 0 or len(text) < at + 4 + 32:
        raise MediaError(f"{path} has no {kind.decode()} box; it is no part of a fragmented MP4")
    return text[at + 4 : at + 4 + 32]
