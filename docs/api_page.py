"""Build the page `/docs` of the service from `openapi.json`, for `make docs`."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, tostring

from srvstat.contract.http import read_openapi
from srvstat.render.html import (
    Child,
    Children,
    build,
    build_raw,
    build_remark,
    build_section,
    build_table,
)

_LIMITS = (
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minimum",
    "default",
)
_ITEM = re.compile(r"(?:-|\d+\.) ")
_BODY_ROWS = "18"
_CONTENT = re.compile(r'(?<=<div id="content">).*(?=      </div>\n    </main>)', re.DOTALL)

Schema = Mapping[str, Any]
"""A schema, a parameter or a response; it can refer to another one by `$ref`."""


def build_api_page(page: str) -> bytes:
    """Return the page with its present content, which `docs.js` makes send requests."""
    content = "".join(f"{tostring(one, encoding='unicode')}\n" for one in _list_content())
    return _CONTENT.sub(lambda _: f"\n{content}", page).encode()


def _list_content() -> list[Element]:
    api = json.loads(read_openapi())
    start, *rules = re.split(r"\n(?=## )", api["info"]["description"])
    return [
        *_build_markdown(start)[:1],
        *(
            _build_operation(api, path, method, methods)
            for path, methods in api["paths"].items()
            for method in ("get", "post")
            if method in methods
        ),
        *(element for rule in rules for element in _build_markdown(rule)),
        build("h2", "Schemas"),
        *(_build_schema(name, one) for name, one in api["components"]["schemas"].items()),
    ]


def _build_code(text: str) -> list[Child]:
    """Return text whose parts in backticks are code."""
    parts = enumerate(" ".join(text.split("\n")).split("`"))
    return [build("code", part) if number % 2 else part for number, part in parts]


def _build_markdown(text: str) -> list[Element]:
    """Return the headings, tables, lists and paragraphs of a description."""
    elements = []
    title = "Rules"
    for block in re.split(r"\n{2,}", text.strip()):
        if block.startswith("## "):
            title = block[3:]
            elements.append(build("h2", *_build_code(title)))
        elif block.startswith("|"):
            head, _, *rows = ([*line[1:-1].split("|")] for line in block.split("\n"))
            cells = ([build("span", *_build_code(cell.strip())) for cell in row] for row in rows)
            elements.append(build_table(title, [name.strip() for name in head], cells, "words"))
        elif _ITEM.match(block):
            items = re.split(r"\n(?=-|\d+\. )", block)
            built = (build("li", *_build_code(_ITEM.sub("", one, count=1))) for one in items)
            elements.append(build("ul" if block[0] == "-" else "ol", *built))
        else:
            elements.append(build("p", *_build_code(block)))
    return elements


def _resolve(api: Schema, one: Schema) -> Schema:
    if "$ref" not in one:
        return one
    found: Any = api
    for name in one["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return {**found, **one}


def _build_type(schema: Schema) -> Element:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return build("a", name, href=f"#{name}")
    if "items" in schema:
        return build("span", "array of ", _build_type(schema["items"]))
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    kinds = schema.get("type", "")
    texts = map(json.dumps, values) if values else [kinds] if isinstance(kinds, str) else kinds
    return build("code", " | ".join(texts))


def _build_field(name: str, schema: Schema, description: str, *, is_optional: bool) -> Children:
    """Return the cells of a field or a parameter: its name, its type, and what it means."""
    limits = (build_remark(f"{one} {schema[one]}") for one in _LIMITS if one in schema)
    title = build("span", build("code", name), *([" optional"] if is_optional else []))
    return title, _build_type(schema), build("span", *_build_code(description), *limits)


def _build_schema(name: str, schema: Schema) -> Element:
    required = schema.get("required", ())
    fields = [
        _build_field(field, one, one.get("description", ""), is_optional=field not in required)
        for field, one in schema.get("properties", {}).items()
    ]
    headers = ("Field", "Type", "Meaning")
    content = build_table(name, headers, fields, "words") if fields else _build_type(schema)
    section = build_section(name, name, build("p", *_build_code(schema["description"])), content)
    section.set("class", "schema")
    return section


def _build_operation(api: Schema, path: str, method: str, methods: Mapping[str, Any]) -> Element:
    operation = methods[method]
    summary = operation["summary"]
    parameters = [_resolve(api, one) for one in methods.get("parameters", ())]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    says = _build_markdown(operation["description"])
    if "head" in methods:
        says += _build_markdown(f"HEAD: {methods['head']['description']}")
    if parameters:
        rows = [
            _build_field(
                one["name"],
                {**_resolve(api, one["schema"]), **one["schema"]},
                one["description"],
                is_optional=not one.get("required"),
            )
            for one in parameters
        ]
        headers = ("Parameter", "Type", "Meaning")
        says.append(build_table(f"Parameters of {summary}", headers, rows, "words"))
    if body:
        says.append(build("p", "The body is a ", _build_type(body["schema"]), "."))
    responses = _iter_responses(api, operation)
    headers = ("Status", "Meaning", "Body")
    says.append(build_table(f"Responses of {summary}", headers, responses, "words"))
    form = build("form", *_iter_inputs(api, parameters, body), class_="try")
    form.attrib |= {"data-method": method.upper(), "data-path": path}
    sides = build("div", build("div", *says), form, class_="sides")
    section = build_section(operation["operationId"], summary, sides)
    section.find("h2").append(build("code", f"{method.upper()} {path}"))  # type: ignore[union-attr] # just built
    section.set("class", "operation")
    return section


def _iter_responses(api: Schema, operation: Schema) -> Iterator[Children]:
    for status, reference in operation["responses"].items():
        response = _resolve(api, reference)
        content = response.get("content", {}).get("application/json")
        shown = _build_type(content["schema"]) if content else ""
        yield build("code", status), build("span", *_build_code(response["description"])), shown


def _iter_inputs(
    api: Schema, parameters: Sequence[Schema], body: Schema | None
) -> Iterator[Element]:
    """Yield what a request needs: its parameters, its body, and where its response is shown."""
    for one in parameters:
        name, values = one["name"], _resolve(api, one["schema"]).get("enum")
        if values:
            field = build("select", *(build("option", value) for value in values), name=name)
        else:
            field = build("input", name=name, type="text", spellcheck="false", value=one["example"])
        yield build("label", name, field)
    if body:
        example = next(iter(body["examples"].values()))["value"]
        text = json.dumps(example, indent=2)
        area = build_raw("textarea", text, name="body", rows=_BODY_ROWS, spellcheck="false")
        yield build("label", "Body", area)
    yield build("button", "Send", type="submit")
    yield build("pre", class_="command", role="group", tabindex="0", aria_label="Command")
    response = {"aria_label": "Response", "aria_live": "polite"}
    yield build("pre", class_="response", role="group", tabindex="0", **response)
