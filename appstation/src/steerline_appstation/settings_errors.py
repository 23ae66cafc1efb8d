"""From pydantic's errors to one line each: key, value, and what is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

from pydantic import BaseModel, ValidationError

_TYPES = {"number": "a number", "integer": "a whole number", "string": "a text", "array": "a list"}


def explain(error: ValidationError, model: type[BaseModel]) -> Iterator[str]:
    """One line for each thing that is wrong."""
    return (line for _, line in problems(error, model, "a setting"))


def problems(error: ValidationError, model: type[BaseModel], noun: str) -> Iterator[tuple[str, str]]:
    """(key, one line) for each thing that is wrong. `noun`: what a key of the model is."""
    schema = _schema(model)
    for problem in error.errors(include_url=False):
        key = ".".join(str(part) for part in problem["loc"])
        kind = problem["type"]
        own = problem["msg"].removeprefix("Value error, ")
        if not key:
            yield "", own
        elif kind == "extra_forbidden":
            known = ", ".join(_properties(schema, problem["loc"][:-1]))
            yield key, f"{key} is not {noun}; allowed: {known}"
        elif kind == "missing":
            yield key, f"{key} is missing; {_allowed(schema, problem['loc'])}"
        else:
            allowed = own if kind == "value_error" else _allowed(schema, problem["loc"]) or own
            yield key, f"{key} is {_shown(problem['input'])}; allowed: {allowed}"


@lru_cache(maxsize=16)
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _node(schema: dict[str, Any], loc: tuple[int | str, ...]) -> dict[str, Any]:
    node = schema
    for part in loc:
        if isinstance(part, int):
            node = cast("dict[str, Any]", node.get("items", {}))
        else:
            node = cast("dict[str, Any]", node.get("properties", {}).get(part, {}))
        for option in node.get("anyOf", [node]):
            if "$ref" in option:
                node = cast("dict[str, Any]", schema["$defs"][option["$ref"].rsplit("/", 1)[1]])
    return node


def _properties(schema: dict[str, Any], loc: tuple[int | str, ...]) -> list[str]:
    return list(_node(schema, loc).get("properties", {}))


def _allowed(schema: dict[str, Any], loc: tuple[int | str, ...]) -> str:
    node = _node(schema, loc)
    if "enum" in node:
        return ", ".join(str(choice) for choice in node["enum"])
    if "minimum" in node and "maximum" in node:
        whole = "a whole number, " if node.get("type") == "integer" else ""
        return f"{whole}{node['minimum']:.10g} to {node['maximum']:.10g}"
    if "properties" in node:
        return f"a table with {', '.join(node['properties'])}"
    return _TYPES.get(str(node.get("type")), "") + (", not empty" if node.get("minLength") else "")
