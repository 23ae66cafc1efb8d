"""pydantic's errors in the words of the settings file: key, value, what is allowed."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails


class SettingsError(ValueError):
    """A settings file that is wrong; the text names each key, its value and what is allowed."""


def as_text(error: ValidationError, model: type[BaseModel]) -> Iterator[str]:
    """One line for each thing that is wrong."""
    details = error.errors()
    for detail in details:
        place = detail["loc"]
        inner = any(other["loc"][: len(place)] == place and other["loc"] != place for other in details)
        # A list whose item is wrong also counts as too short: once is enough.
        if not (inner and detail["type"] == "too_short"):
            yield _line(detail, model)


def _line(detail: ErrorDetails, model: type[BaseModel]) -> str:
    key = _key(detail["loc"])
    kind, context, message = detail["type"], detail.get("ctx", {}), detail["msg"]
    if kind == "extra_forbidden":
        return f"{key} is not a key; allowed here: {', '.join(_keys_at(model, detail['loc'][:-1]))}"
    if kind == "missing":
        return f"{key} is missing"
    if kind == "value_error":
        text = str(context.get("error", message))
        return text if not key else f"{key} is {_shown(detail['input'])}; {text}"
    allowed = {
        "greater_than_equal": f"{context.get('ge')} or more",
        "less_than_equal": f"{context.get('le')} or less",
        "tuple_type": f"a list, as [[{key}]] or [...]",
        "literal_error": f"{context.get('expected')}",
        "string_pattern_mismatch": f"text of the form {context.get('pattern')}",
        "string_too_long": f"at most {context.get('max_length')} characters",
        "string_too_short": f"at least {context.get('min_length')} character",
        "too_short": f"at least {context.get('min_length')}",
        "too_long": f"at most {context.get('max_length')}",
    }.get(kind)
    if allowed is None:
        return f"{key} is {_shown(detail['input'])}; allowed: {_plain(message)}"
    limits = _limits(model, detail["loc"])
    return f"{key} is {_shown(detail['input'])}; allowed: {limits or allowed}"


def _plain(message: str) -> str:
    for start in ("Input should be a valid ", "Input should be "):
        if message.startswith(start):
            return message.removeprefix(start)
    return message


def _key(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _model_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (tuple, Union, types.UnionType):
        for argument in get_args(annotation):
            found = _model_of(argument)
            if found is not None:
                return found
    return None


def _model_at(model: type[BaseModel], location: tuple[int | str, ...]) -> type[BaseModel]:
    for part in location:
        for name, field in model.model_fields.items():
            if part in (name, field.alias):
                model = _model_of(field.annotation) or model
    return model


def _keys_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    return [field.alias or name for name, field in _model_at(model, location).model_fields.items()]


def _limits(model: type[BaseModel], location: tuple[int | str, ...]) -> str:
    """Both ends of a number's range, where it has both."""
    owner = _model_at(model, location[:-1])
    for name, field in owner.model_fields.items():
        if location[-1:] in ((name,), (field.alias,)):
            low = next((m.ge for m in field.metadata if hasattr(m, "ge")), None)
            high = next((m.le for m in field.metadata if hasattr(m, "le")), None)
            if low is not None and high is not None:
                return f"{low} to {high}"
    return ""
