"""The repository's issue forms and citation."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pytest_ldos.judge.gate.verdict import Verdict

ROOT = Path(__file__).parents[3]
FORMS = sorted(each for each in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if each.name != "config.yml")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_forms_have_the_fields_github_requires(form):
    text = yaml.safe_load(form.read_text("utf-8"))
    assert text.keys() >= {"name", "description", "body"}
    fields = [each for each in text["body"] if each["type"] != "markdown"]
    assert {each["type"] for each in fields} <= {"textarea", "input", "dropdown"}
    assert len({each["id"] for each in fields}) == len(fields) > 0
    assert all(each["attributes"]["label"] for each in fields)


def test_the_form_for_verdicts_offers_all_of_them():
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/wrong-verdict.yml").read_text("utf-8"))
    assert set(form["body"][0]["attributes"]["options"]) == {str(each) for each in Verdict} - {"not_judged", "shown"}


def test_citation_has_the_required_fields():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation.keys() >= {"title", "message", "authors", "license"}
    assert citation["license"] == "MIT"
