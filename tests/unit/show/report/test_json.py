"""The JSON form: it matches the schema, and the schema is complete."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from jsonschema import Draft202012Validator

from docs.generate.report_schema import render_schema
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.show.report import json_text
from pytest_ldos.show.report.compose import compose, compose_infra
from pytest_ldos.show.report.document import Document
from tests.builders.reports import HOSTILE, full_document, in_words, section_of
from tests.builders.trials import noisy_set

VALIDATOR = Draft202012Validator(json.loads(json_text.FILE.read_text("utf-8")))


def judged(head, base):
    return compose([section_of(head, base)])


def test_published_schema_matches_the_types():
    """After a change of the document: make reference."""
    assert json_text.FILE.read_text("utf-8") == render_schema()


def test_published_schema_is_a_valid_schema():
    Draft202012Validator.check_schema(json.loads(json_text.FILE.read_text("utf-8")))


def described(part):
    if isinstance(part, dict):
        for name, each in part.get("properties", {}).items():
            yield name, each.get("description", "")
        for each in part.values():
            yield from described(each)


def test_every_field_is_described():
    descriptions = dict(described(json.loads(json_text.FILE.read_text("utf-8"))))
    assert len(descriptions) > 60
    assert [name for name, text in descriptions.items() if not text] == []


@pytest.mark.parametrize(
    "document",
    [
        full_document(),
        Document(sections=()),
        judged(noisy_set(1, factors={"T1": 1.5}), noisy_set(2)),
        judged(noisy_set(1, failures=10), noisy_set(2)),
        judged(noisy_set(1, n=1), noisy_set(2, n=1)),
        compose([compose_infra("baseline", ["nothing started"])]),
        *(in_words(full_document(), text) for text in HOSTILE),
    ],
)
def test_documents_are_valid(document):
    text = json_text.render(document)
    VALIDATOR.validate(json.loads(text))
    assert text.isascii()


def test_unknown_fields_are_invalid():
    plain = json.loads(json_text.render(full_document()))
    plain["sections"][0]["surprise"] = 1
    assert not VALIDATOR.is_valid(plain)
    del plain["sections"][0]["surprise"]
    assert VALIDATOR.is_valid(plain)
    del plain["sections"][0]["metrics"][0]["unit"]
    assert not VALIDATOR.is_valid(plain)


def test_numbers_are_those_of_gate_and_trials():
    head, base = noisy_set(1, factors={"T1": 1.5}), noisy_set(2)
    result = decide(head, base, Policy())
    comparison = result.comparison("T1")
    assert comparison is not None
    plain = json.loads(json_text.render(judged(head, base)))
    (section,) = plain["sections"]
    t1 = next(each for each in section["metrics"] if each["name"] == "T1")
    assert plain["verdict"] == section["verdict"] == t1["verdict"] == "regressed"
    assert t1["change"]["ratio"] == comparison.ratio
    assert (t1["change"]["low"], t1["change"]["high"]) == (comparison.low, comparison.high)
    assert t1["head"]["median"] == comparison.head_median
    values = [trial.measurements["T1"].value for trial in head.trials]
    assert [point["value"] for point in t1["head"]["points"]] == values


def test_infinite_numbers_are_null():
    head, base = noisy_set(1, n=20, failures=15), noisy_set(2, n=20)
    result = decide(head, base, Policy())
    endless = {"ratio": math.inf, "low": math.inf, "high": math.inf, "mde": math.inf}
    comparisons = tuple(dataclasses.replace(each, **endless) for each in result.comparisons)
    section = section_of(head, base, result=dataclasses.replace(result, comparisons=comparisons))
    plain = json.loads(json_text.render(compose([section])))
    VALIDATOR.validate(plain)
    t1 = next(each for each in plain["sections"][0]["metrics"] if each["name"] == "T1")
    assert {t1["change"][name] for name in ("ratio", "low", "high", "mde")} == {None}
    assert t1["change"]["is_endless"] is True
    assert t1["head"]["censored"] == 15
    assert sum(point["value"] is None for point in t1["head"]["points"]) == 15
