"""Read params.yaml, and say in one line what is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from subspaces.errors import UserError
from subspaces.geometries.base import geometry_names
from subspaces.pipeline.params.root import Params
from subspaces.text.pair_model import encoder_settings


def parse_params(content: Any, name: str = "params.yaml") -> Params:
    """Check a mapping against the types; the first problem becomes one line that names the key and what is allowed."""
    if not isinstance(content, dict):
        raise UserError(f"{name}: it must be a mapping of keys to values.")
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise UserError("\n".join(f"{name}: {_explain(problem)}" for problem in problems[:5])) from None


def _explain(problem: ErrorDetails) -> str:
    kinds = {*geometry_names(), *encoder_settings()}
    path = [str(part) for part in problem["loc"]]
    tag = next(
        (part for place, part in enumerate(path) if part in kinds and place >= 2 and path[place - 2] == "models"), None
    )
    path = [part for place, part in enumerate(path) if not (part == tag and path[place - 2] == "models")]
    where = ".".join(path) or "the file"
    if problem["type"] == "extra_forbidden":
        return f"{where} is not a known key; allowed here: {', '.join(_known_keys(path[:-1], tag))}."
    if problem["type"] == "missing":
        return f"{where} is missing."
    shown = "" if isinstance(problem["input"], dict) else f" (it is {problem['input']!r})"
    message = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {message[0].lower()}{message[1:]}{shown}."


def _known_keys(path: list[str], tag: str | None) -> list[str]:
    """The keys that the schema allows at `path`, for the geometry `tag` where the path leads to a model."""
    schema = Params.model_json_schema()
    nodes = [schema]
    for part in path:
        found = []
        for node in (_resolve(one, schema) for one in nodes):
            for option in node.get("oneOf", node.get("anyOf", [node])):
                option = _resolve(option, schema)
                child = option.get("properties", {}).get(part, option.get("additionalProperties"))
                if isinstance(child, dict):
                    found.append(child)
        nodes = found
    keys: list[str] = []
    for node in nodes:
        node = _resolve(node, schema)
        for option in node.get("oneOf", node.get("anyOf", [node])):
            known = _resolve(option, schema).get("properties", {})
            if tag is None or known.get("geometry", {}).get("const", tag) == tag:
                keys += [key for key in known if key not in keys]
    return keys


def _resolve(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    return node


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses a key written twice and reads 1e-3 as the number it is."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=deep)
            if name in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {name!r} is written twice", key.start_mark
                )
            seen.add(name)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def load_params(path: str | Path = "params.yaml", scale: str | None = None) -> Params:
    """Read params.yaml; `scale` replaces the scale it names."""
    path = Path(path)
    try:
        content = _Loader(path.read_text(encoding="utf-8")).get_single_data()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UserError(f"{path.name} was not found: run from the project's folder, or give --params.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path.name} is not valid YAML: {' '.join(str(error).split())}") from error
    if scale is not None and isinstance(content, dict):
        content = {**content, "scale": scale}
    return parse_params(content, path.name)


def params_schema() -> dict[str, Any]:
    """JSON schema of params.yaml, for editors and for `workflow/schemas`."""
    schema = Params.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "params.yaml"}
