"""Several networks at once, each measured while the others are: how many fit on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from steerline_testbed.network.errors import TestbedError


def run(count: int, run_id: str, argv: Sequence[str]) -> int:
    """`assert` in `count` processes that begin to measure together; exit status 0 when all passed."""
    if not 2 <= count <= 16:
        raise TestbedError(f"--side-by-side is {count}; allowed: 1 to 16")
    words = list(argv)
    at = next(index for index, word in enumerate(words) if word.startswith("--side-by-side"))
    del words[at : at + (1 if "=" in words[at] else 2)]
    command = [sys.executable, "-m", "steerline_testbed", *words, "--json", "--hold"]
    children = [
        subprocess.Popen(
            [*command, "--run-id", f"{run_id}-{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for number in range(1, count + 1)
    ]
    try:
        return _measure_together(children)
    finally:
        for child in children:
            if child.poll() is None:
                child.terminate()
        for child in children:
            child.communicate()


def _measure_together(children: Sequence[subprocess.Popen[str]]) -> int:
    for child in children:
        assert child.stdout is not None
        if child.stdout.readline() != "built\n":
            return 1
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    passed = 0
    for number, child in enumerate(children, 1):
        assert child.stdout is not None
        answer = child.stdout.read()
        report: dict[str, Any] = json.loads(answer) if answer.strip() else _NO_REPORT
        passed += report["passed"]
        state = "passed" if report["passed"] else "FAILED"
        lines: dict[str, Any] = report["lines"]
        rates = [line[key] / 1e6 for line in lines.values() for key in ("down_bps", "up_bps")]
        seen = f", lines {min(rates):.3f} to {max(rates):.3f} Mbit/s" if rates else ""
        print(f"network {number} of {len(children)}: {state} at attempt {report['attempts']}{seen}")
        for problem in report["problems"]:
            print(f"  {problem}")
        if "load" in report:
            load = report["load"]
            print(
                f"  then {load['delivered_bps'] / 1e6:.2f} Mbit/s of TCP, "
                f"rho {load['rho']:.3f}, uncounted {load['uncounted']} packets"
            )
    return 0 if passed == len(children) else 1


_NO_REPORT: dict[str, Any] = {"passed": False, "problems": ["it gave no report"], "attempts": 0, "lines": {}}
