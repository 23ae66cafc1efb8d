"""CPU time and memory of processes, from /proc."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def children(root: int) -> list[int]:
    """The process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has just ended
        parents.setdefault(parent, []).append(int(stat.parent.name))
    found = [root]
    for pid in found:
        found += parents.get(pid, [])
    return found


def kind(pid: int) -> str:
    """What a browser's process is for, in a word."""
    try:
        # Chromium's children write theirs anew, with spaces.
        words = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").split()
    except OSError:
        return "gone"
    if words[1:2] == ["host"]:
        return "host"
    if "--extension-process" in words:
        return "extension"
    kinds = [word.partition("=")[2] for word in words if word.startswith(("--type=", "--utility-sub-type="))]
    return kinds[-1] if kinds else "browser"


def cpu_s(pid: int) -> float:
    """CPU time since it began, seconds; 0 for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mb(pid: int) -> dict[str, float]:
    """Rss, Pss and what is its own alone, in MB of 1,000,000 bytes."""
    found: dict[str, float] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value = line.split(":")
        found[name] = int(value.split()[0]) * 1024 / 1e6
    return {
        "rss": found["Rss"],
        "pss": found["Pss"],
        "own": found["Private_Clean"] + found["Private_Dirty"],
    }
