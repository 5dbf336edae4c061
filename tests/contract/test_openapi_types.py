"""What generators of clients need of the OpenAPI document (docs/generated-clients.md)."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from contract.openapi_parts import DOCUMENT, OPERATIONS, SCHEMAS, parts, validator


def types(part: dict[str, Any]) -> list[str]:
    """Return the types of a schema."""
    named = part.get("type", [])
    return named if isinstance(named, list) else [named]


def test_every_number_says_its_width_and_nothing_is_only_null() -> None:
    schemas = [(place, part) for place, part in parts(DOCUMENT) if types(part) and "in" not in part]

    for place, part in schemas:
        assert types(part) != ["null"], place
        if "number" in types(part):
            assert part["format"] == "double", place
        if "integer" in types(part):
            assert part["format"] == "int64", place
    assert sum("format" in part for _, part in schemas) > 10


@pytest.mark.parametrize("uptime", [0, 0.5, 1, "", "99", False, [], {}])
def test_uptime_is_nothing_but_null(uptime: Any) -> None:
    judge = validator({"$ref": "#/components/schemas/ServerResult"})
    content = OPERATIONS["compareServers"]["responses"]["200"]["content"]["application/json"]
    result = content["examples"]["defaultRange"]["value"]["data"][0]

    assert judge.is_valid(result)
    assert not judge.is_valid({**result, "uptime": uptime})
    assert not judge.is_valid({key: result[key] for key in result if key != "uptime"})


def test_no_property_has_a_default_which_would_make_it_required() -> None:
    for name, schema in SCHEMAS.items():
        assert "default" not in schema, name
        assert all("default" not in part for part in schema.get("properties", {}).values()), name


def test_a_set_of_choices_that_several_properties_have_is_one_schema() -> None:
    choices = [str(part["enum"]) for _, part in parts(DOCUMENT) if "enum" in part]

    assert len(choices) == len(set(choices))


def test_no_body_has_a_schema_without_a_name() -> None:
    bodies = [
        part["application/json"]["schema"]
        for place, part in parts(DOCUMENT)
        if place.endswith("/content")
    ]

    assert len(bodies) > 8
    for schema in bodies:
        assert list(schema) == ["$ref"]


def test_the_document_names_its_license_its_contact_and_a_server_that_a_client_can_call() -> None:
    assert DOCUMENT["info"]["license"]["identifier"] == "Apache-2.0"
    assert DOCUMENT["info"]["contact"]["name"]
    first = urlsplit(DOCUMENT["servers"][0]["url"])
    assert (first.scheme, first.hostname, first.port) == ("http", "127.0.0.1", 8000)


def test_a_comparison_links_to_the_detail_of_its_servers() -> None:
    answered = OPERATIONS["compareServers"]["responses"]["200"]
    shared = DOCUMENT["paths"]["/gateway/v1/servers/{identifier}"]["parameters"]
    schemas = {parameter["name"]: parameter["schema"] for parameter in shared}

    assert len(answered["links"]) == 2
    for position, link in enumerate(answered["links"].values()):
        assert link["operationId"] == "getServer"
        assert set(link["parameters"]) == set(schemas)
        validator(schemas["by"]).validate(link["parameters"]["by"])
        source, _, pointer = link["parameters"]["identifier"].partition("#")
        assert source == "$response.body"
        for example in answered["content"]["application/json"]["examples"].values():
            value = example["value"]
            for step in pointer.split("/")[1:]:
                value = value[int(step) if step.isdigit() else step]
            assert value == example["value"]["data"][position]["serverId"]
            validator(schemas["identifier"]).validate(value)
