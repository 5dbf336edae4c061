"""Check the properties that client generators need (docs/generated-clients.md)."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from contract.openapi_parts import DOCUMENT, OPERATIONS, SCHEMAS, build_validator, walk


def list_types(part: dict[str, Any]) -> list[str]:
    named = part.get("type", [])
    return named if isinstance(named, list) else [named]


def test_every_number_has_a_format_and_no_type_is_only_null() -> None:
    schemas = [
        (place, part) for place, part in walk(DOCUMENT) if list_types(part) and "in" not in part
    ]

    for place, part in schemas:
        assert list_types(part) != ["null"], place
        if "number" in list_types(part):
            assert part["format"] == "double", place
        if "integer" in list_types(part):
            assert part["format"] == "int64", place
    assert sum("format" in part for _, part in schemas) > 10


@pytest.mark.parametrize("uptime", [0, 0.5, 1, "", "99", False, [], {}])
def test_uptime_accepts_only_null(uptime: Any) -> None:
    schema = build_validator({"$ref": "#/components/schemas/ServerResult"})
    content = OPERATIONS["compareServers"]["responses"]["200"]["content"]["application/json"]
    result = content["examples"]["defaultRange"]["value"]["data"][0]

    assert schema.is_valid(result)
    assert not schema.is_valid({**result, "uptime": uptime})
    assert not schema.is_valid({key: result[key] for key in result if key != "uptime"})


def test_no_property_has_a_default() -> None:
    for name, schema in SCHEMAS.items():
        assert "default" not in schema, name
        assert all("default" not in part for part in schema.get("properties", {}).values()), name


def test_every_enumeration_is_defined_once() -> None:
    choices = [str(part["enum"]) for _, part in walk(DOCUMENT) if "enum" in part]

    assert len(choices) == len(set(choices))


def test_every_body_has_a_named_schema() -> None:
    bodies = [
        part["application/json"]["schema"]
        for place, part in walk(DOCUMENT)
        if place.endswith("/content")
    ]

    assert len(bodies) > 8
    for schema in bodies:
        assert list(schema) == ["$ref"]


def test_the_document_has_a_license_a_contact_and_a_reachable_server() -> None:
    assert DOCUMENT["info"]["license"]["identifier"] == "Apache-2.0"
    assert DOCUMENT["info"]["contact"]["name"]
    first = urlsplit(DOCUMENT["servers"][0]["url"])
    assert (first.scheme, first.hostname, first.port) == ("http", "127.0.0.1", 8000)


def test_a_comparison_links_to_its_servers() -> None:
    answered = OPERATIONS["compareServers"]["responses"]["200"]
    shared = DOCUMENT["paths"]["/gateway/v1/servers/{identifier}"]["parameters"]
    schemas = {parameter["name"]: parameter["schema"] for parameter in shared}

    assert len(answered["links"]) == 2
    for position, link in enumerate(answered["links"].values()):
        assert link["operationId"] == "getServer"
        assert set(link["parameters"]) == set(schemas)
        build_validator(schemas["by"]).validate(link["parameters"]["by"])
        source, _, pointer = link["parameters"]["identifier"].partition("#")
        assert source == "$response.body"
        for example in answered["content"]["application/json"]["examples"].values():
            value = example["value"]
            for step in pointer.split("/")[1:]:
                value = value[int(step) if step.isdigit() else step]
            assert value == example["value"]["data"][position]["serverId"]
            build_validator(schemas["identifier"]).validate(value)
