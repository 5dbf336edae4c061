"""The section on integrity: the result of each rule, and the evidence of suspect results."""

from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

from srvstat.documents.integrity import AnyRule, Integrity, Result, ServerIntegrity
from srvstat.render.report.elements import (
    Child,
    Children,
    append,
    build,
    build_details,
    build_fields,
    build_section,
    build_table,
)
from srvstat.render.report.labels import Labels
from srvstat.render.tables.integrity import MEANING
from srvstat.render.tables.integrity_evidence import describe_evidence

RULE_NAMES = {
    "flatLine": "Flat line",
    "floor": "Floor",
    "jitter": "Jitter",
    "missingValues": "Missing values",
    "stepChange": "Step change",
    "noDailyCycle": "No daily cycle",
    "aboveMaximum": "Above maximum",
    "gaps": "Gaps",
}

_RULES = {
    "flatLine": "a count that does not change for a long time",
    "floor": "a count that many observations have and few go below",
    "jitter": "counts that go up and down at random",
    "missingValues": "numbers that are left out at regular distances",
    "stepChange": "a level that changes from one week to the next",
    "noDailyCycle": "counts that do not depend on the hour of the day",
    "aboveMaximum": "counts above the maximum in the server's record",
    "gaps": "observations that are missing",
}
"""What each rule looks for."""

_RESULTS: Mapping[Result, str] = {
    "pass": "pass",
    "suspect": "suspect",
    "notEvaluated": "not evaluated",
}


def build_integrity(integrity: Integrity, labels: Labels) -> Element:
    """Build the section on integrity."""
    section = build_section(
        "integrity",
        "Integrity",
        build("p", MEANING, class_="note"),
        _build_results(integrity, labels),
    )
    for at, server in enumerate(integrity.servers):
        append(section, _describe_suspects(server, labels.build_name(at), integrity.time_zone))
    reasons = list(_list_reasons(integrity, labels))
    if reasons:
        table = build_table(
            "Rules that were not evaluated", ("Server and rule", "Reason"), reasons, "words"
        )
        section.append(build_details("Why rules were not evaluated", table, class_="printed"))
    return section


def _build_results(integrity: Integrity, labels: Labels) -> Element:
    names = [labels.build_name(at) for at in range(len(integrity.servers))]
    rows = [
        (_build_rule(rules[0]), *map(_build_result, rules))
        for rules in zip(*(server.rules for server in integrity.servers), strict=True)
    ]
    return build_table("Results of the integrity rules", ("Rule", *names), rows, "results")


def _build_rule(rule: AnyRule) -> Element:
    note = build("span", _RULES[rule.rule], class_="note")
    return build("span", RULE_NAMES[rule.rule], " ", note)


def _build_result(rule: AnyRule) -> Element:
    return build("span", _RESULTS[rule.result], class_=f"result {rule.result}")


def _describe_suspects(server: ServerIntegrity, name: Child, zone: str) -> Iterator[Element]:
    suspects = [rule for rule in server.rules if rule.result == "suspect"]
    if suspects:
        yield build("h3", "Suspect on ", name)
    for rule in suspects:
        causes = build("span", "Innocent causes: ", " ".join(rule.innocent_causes), class_="note")
        evidence = build("span", describe_evidence(rule, zone), " ", causes)
        yield build_fields([(RULE_NAMES[rule.rule], evidence)])


def _list_reasons(integrity: Integrity, labels: Labels) -> Iterator[Children]:
    for at, server in enumerate(integrity.servers):
        for rule in server.rules:
            if rule.reason is not None:
                rule_of = build("span", labels.build_name(at), f": {RULE_NAMES[rule.rule].lower()}")
                yield rule_of, rule.reason
