"""Generated code, images and schemas are what their sources say."""

from __future__ import annotations

import filecmp
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTRACT = ROOT / "contract"


def buf(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(next(ROOT.glob("node_modules/@bufbuild/buf-linux-*/bin/buf"))), *arguments],
        cwd=CONTRACT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "BUF_CACHE_DIR": str(ROOT / ".cache/buf")},
    )


def test_committed_code_is_what_the_proto_files_generate(tmp_path: Path) -> None:
    """Run `make proto` when this fails."""
    subprocess.run([str(CONTRACT / "generate.sh"), str(tmp_path)], check=True)
    fresh = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    committed = sorted(
        p.relative_to(CONTRACT / "src")
        for p in (CONTRACT / "src/steerline").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    )
    assert committed == fresh
    _, different, errors = filecmp.cmpfiles(
        CONTRACT / "src", tmp_path, [str(p) for p in fresh], shallow=False
    )
    assert (different, errors) == ([], [])


def test_proto_files_pass_buf_lint() -> None:
    """The STANDARD rules, without exception."""
    result = buf("lint")
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_wire_breaks_nobody() -> None:
    """buf breaking against the committed image."""
    result = buf("breaking", "--against", "image.binpb")
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_broken_wire_would_be_noticed(tmp_path: Path) -> None:
    """The guard itself: a field that changes its number is refused."""
    for source in (CONTRACT / "proto").rglob("*.proto"):
        target = tmp_path / "proto" / source.relative_to(CONTRACT / "proto")
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text()
        target.write_text(text.replace("int64 buffer_length_ms = 6;", "int64 buffer_length_ms = 60;"))
    (tmp_path / "buf.yaml").write_text((CONTRACT / "buf.yaml").read_text())
    result = buf("breaking", str(tmp_path), "--against", "image.binpb")
    assert result.returncode != 0
    assert "buffer_length_ms" in result.stdout
