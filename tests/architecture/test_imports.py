"""Imports point down only, and cores know no shell."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# package: (folder, packages of ours it may import)
MAY_IMPORT = {
    "steerline_contract": ("contract/src/steerline_contract", {"steerline"}),
    "steerline_controller": ("controller/src", {"steerline", "steerline_contract"}),
    "steerline_appstation": ("appstation/src", {"steerline", "steerline_contract"}),
    "steerline_testbed": (
        "deploy/src",
        {"steerline", "steerline_contract", "steerline_controller", "steerline_appstation"},
    ),
}
CORES = ["controller/src/steerline_controller/core", "appstation/src/steerline_appstation/core"]
# What a core may use of the standard library. Nothing of it knows a socket, a clock or a file.
PURE = {
    "__future__",
    "abc",
    "bisect",
    "collections",
    "contextlib",
    "copy",
    "dataclasses",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "heapq",
    "ipaddress",
    "itertools",
    "math",
    "operator",
    "random",
    "re",
    "statistics",
    "string",
    "types",
    "typing",
}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
    return found


def files(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found, f"{folder} has no Python files"
    return found


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_what_is_below_it(package: str) -> None:
    """controller and appstation import contract, never each other; contract imports nothing of ours."""
    folder, below = MAY_IMPORT[package]
    for path in files(folder):
        for name in imports(path):
            top = name.split(".")[0]
            if top.startswith("steerline"):
                assert top in below | {package}, f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("core", CORES)
def test_a_core_knows_no_socket_clock_or_library_of_the_shell(core: str) -> None:
    """Only words, itself and pure parts of the standard library."""
    package = core.split("/")[2]
    for path in files(core):
        for name in imports(path):
            top = name.split(".")[0]
            allowed = (
                top in PURE
                or top == "steerline_contract"
                or name == f"{package}.core"
                or name.startswith(f"{package}.core.")
            )
            assert allowed, f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("core", CORES)
def test_a_core_uses_no_wire(core: str) -> None:
    """Bytes become words in one place, and it is not a core."""
    for path in files(core):
        assert "steerline_contract.wire" not in imports(path), path


@pytest.mark.parametrize("core", ["controller/src/steerline_controller/core"])
def test_chance_comes_from_a_seed(core: str) -> None:
    """The global random generator is used nowhere in a core."""
    for path in files(core):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "random"
            ):
                assert node.attr == "Random", f"{path}: random.{node.attr}"
