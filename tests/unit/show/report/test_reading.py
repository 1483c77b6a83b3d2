"""Reading foreign reports: invalid and oversized ones are refused."""

from __future__ import annotations

import json
import random

import pytest
from jsonschema import Draft202012Validator

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.show.report import json_text, markdown, workflow_commands
from pytest_ldos.show.report import json_text as reading
from pytest_ldos.show.report.compose import compose
from pytest_ldos.show.report.document import Document
from tests.builders.reports import HOSTILE, full_document, in_words, section_of
from tests.builders.trials import noisy_set

VALIDATOR = Draft202012Validator(json.loads(json_text.FILE.read_text("utf-8")))


@pytest.fixture
def written(tmp_path):
    def write(content) -> Document:
        file = tmp_path / "result.json"
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return reading.read_document(file)

    return write


def plain(document: Document | None = None):
    return json.loads(json_text.render(document or full_document()))


def measured() -> Document:
    head, base = noisy_set(1, factors={"T1": 1.5}), noisy_set(2)
    return compose([section_of(head, base)])


@pytest.mark.parametrize("document", [full_document(), measured(), Document(sections=())])
def test_written_document_is_read_back(written, document):
    assert written(json_text.render(document).encode()) == document


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_escaped(written, text):
    document = in_words(full_document(), text)
    assert written(json_text.render(document).encode()) == document


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", r"not JSON \(JSONDecodeError\)"),
        (b"\xff", r"not JSON \(UnicodeDecodeError\)"),
        (b"[" * 100_000, r"not JSON \(RecursionError\)"),
        (b"[]", "not a JSON object"),
        (b'{"kind": "x", "kind": "pytest-ldos report"}', "has a duplicate key"),
        (b'{"kind": NaN}', "the number NaN"),
        (b'{"kind": -Infinity}', "the number -Infinity"),
        (b'{"kind": ' + b"1" * 5000 + b"}", r"not JSON \(ValueError\)"),
        (b" " * (reading.LARGEST + 1), "is larger than 8388608 bytes"),
        ({}, "its kind is not 'pytest-ldos report'"),
        ({"kind": "pytest-ldos report", "schema": True}, "its schema is not 3"),
        ({"kind": "pytest-ldos report", "schema": 2}, "its schema is not 3"),
        ({"kind": "pytest-ldos report", "schema": 3}, "it has not exactly the fields of a Document"),
    ],
)
def test_file_that_is_not_a_report_is_refused(written, content, reason):
    with pytest.raises(RecordUnreadable, match=reason) as wrong:
        written(content)
    assert wrong.value.remedy


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("verdict",), "passed", "its verdict is not the worst of its sections'"),
        (("made_at",), 1, "made_at is not a text"),
        (("made_by",), "x" * 10_001, "made_by is longer than 10000 characters"),
        (("sections",), {}, "sections is no list"),
        (("sections",), [[]], r"sections\[0\] has not exactly the fields of a Section"),
        (("sections", 0, "verdict"), "fine", r"sections\[0\].verdict is no Verdict"),
        (("sections", 0, "reasons"), ["x"] * 10_001, r"sections\[0\].reasons has more than 10000 items"),
        (("sections", 0, "head", "trials"), 1.5, r"sections\[0\].head.trials is not an integer"),
        (("sections", 0, "head", "trials"), True, r"sections\[0\].head.trials is not an integer"),
        (("sections", 0, "head", "trials"), 2**60, r"sections\[0\].head.trials is not an integer of at most 53 bits"),
        (("sections", 0, "metrics", 0, "change", "ratio"), 1e300, r"change.ratio is not a number"),
        (("sections", 0, "metrics", 0, "change", "ratio"), "1", r"metrics\[0\].change.ratio is not a number"),
        (("sections", 0, "metrics", 0, "change", "is_endless"), 0, r"change.is_endless is neither true nor false"),
        (("sections", 0, "test", "line"), None, r"sections\[0\].test.line is not an integer"),
    ],
)
def test_errors_are_named(written, place, value, reason):
    made = plain()
    *above, last = place
    inner = made
    for key in above:
        inner = inner[key]
    inner[last] = value
    with pytest.raises(RecordUnreadable, match=reason):
        written(made)


def places(value, at=()):
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from places(each, (*at, key))


ODD: tuple[object, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    -1e18,
    1e-300,
    "",
    "x" * 700,
    "passed",
    "regressed",
    [],
    {},
    [None],
    {"x": 1},
)


def test_documents_refused_by_the_schema_are_not_read_and_others_can_be_shown(written):
    """Every place of a document with every odd value in turn, drawn by a fixed seed."""
    whole = plain()
    drawn = random.Random(8)
    everywhere = [place for place in places(whole) if place]
    for place in drawn.sample(everywhere, 200):
        made = json.loads(json.dumps(whole))
        inner = made
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = drawn.choice(ODD)
        try:
            document = written(made)
        except RecordUnreadable:
            continue
        assert VALIDATOR.is_valid(made)
        assert markdown.render(document).startswith(markdown.MARK)
        assert workflow_commands.render(document).count("\n") <= len(document.sections)


def test_additional_and_missing_fields_are_refused(written):
    made = plain()
    made["sections"][1]["extra"] = 1
    with pytest.raises(RecordUnreadable, match=r"sections\[1\] has not exactly the fields of a Section"):
        written(made)
    del made["sections"][1]["extra"], made["sections"][1]["notes"]
    with pytest.raises(RecordUnreadable, match=r"sections\[1\] has not exactly"):
        written(made)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(RecordUnreadable, match="cannot be read: No such file"):
        reading.read_document(tmp_path / "none.json")
