"""`srvstat schema`: the JSON Schema of each document."""

import json

import jsonschema_rs
import pytest

from conftest import Cli
from srvstat.documents import load_documents

COMMANDS = {
    "servers": ["servers", "--snapshot"],
    "stats": ["stats", "--all", "--quantile=0.95", "--above=9", "--versus=previous", "--snapshot"],
    "top": ["top", "--limit=2", "--snapshot"],
    "growth": ["growth", "harbor-city", "empty-plains", "--step=week", "--snapshot"],
    "peakHours": ["peak-hours", "harbor-city", "empty-plains", "--snapshot"],
    "integrity": ["integrity", "--all", "--snapshot"],
    "snapshotInfo": ["snapshot", "info"],
    "verification": ["snapshot", "verify"],
}


@pytest.mark.parametrize("name", load_documents())
def test_a_schema_names_its_document(cli: Cli, name: str) -> None:
    schema = json.loads(cli("schema", name).stdout)

    jsonschema_rs.meta.validate(schema)
    assert schema["properties"]["document"]["const"] == name


def test_an_unknown_name_lists_the_documents(cli: Cli) -> None:
    ran = cli("schema", "nothing")

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert "choose accessCheck, diff," in ran.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_a_document_matches_its_schema(cli: Cli, name: str, demo_snapshot: str) -> None:
    schema = json.loads(cli("schema", name).stdout)
    document = json.loads(cli(*COMMANDS[name], demo_snapshot, "--json").stdout)

    jsonschema_rs.Draft202012Validator(schema).validate(document)
