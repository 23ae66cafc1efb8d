"""The settings file as JSON Schema: `python -m steerline_controller.shell.settings_schema` prints it."""

from __future__ import annotations

import json

from steerline_controller.shell.settings import Settings


def schema_text() -> str:
    """The schema as it stands in `contract/schema/controller-settings.schema.json`."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema |= Settings.model_json_schema(by_alias=True)
    schema["title"] = "Settings of steerline-controller"
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")
