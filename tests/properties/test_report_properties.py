"""Any document makes a report in every format."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pytest_ldos.show.report import html as page
from pytest_ldos.show.report import json_text, markdown, terminal, workflow_commands
from pytest_ldos.show.report.document import Change, Document
from tests.builders.reports import HOSTILE

VALIDATOR = Draft202012Validator(json.loads(json_text.FILE.read_text("utf-8")))

TEXTS = st.text(max_size=12) | st.sampled_from(HOSTILE)
NUMBERS = st.floats(-1e9, 1e9, allow_nan=False)
PLAIN: Mapping[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: st.integers(0, 10_000),
    float: NUMBERS,
    bool: st.booleans(),
    type(None): st.none(),
}
SHARES = {name: st.floats(0, 1e6) for name in ("floor", "tail", "p_value", "explained")}


def any_of(kind: Any) -> st.SearchStrategy[Any]:
    if isinstance(kind, types.UnionType):
        return st.one_of(*(any_of(each) for each in get_args(kind)))
    if get_origin(kind) is tuple:
        return st.lists(any_of(get_args(kind)[0]), max_size=2).map(tuple)
    if kind in PLAIN:
        return PLAIN[kind]
    if issubclass(kind, StrEnum):
        return st.sampled_from(list(kind))
    assert isinstance(kind, type)
    assert is_dataclass(kind)
    hints, known = get_type_hints(kind), SHARES if kind is Change else {}
    return st.builds(
        kind,
        **{each.name: known[each.name] if each.name in known else any_of(hints[each.name]) for each in fields(kind)},
    )


DOCUMENTS = any_of(Document)


@settings(max_examples=20, deadline=None)
@given(DOCUMENTS)
def test_any_document_is_rendered_in_every_format(document):
    VALIDATOR.validate(json.loads(json_text.render(document)))
    workflow_commands.junit_properties(document)
    terminal_text = terminal.render(document, width=100, color=False)
    for text in (terminal_text, terminal.render_failure(document), markdown.render(document)):
        require_tame(text)
    assert len(markdown.render(document)) < 65_536


@settings(max_examples=10, deadline=None)  # a page with many charts takes a second
@given(DOCUMENTS)
def test_any_document_is_rendered_as_a_page(document):
    require_tame(page.render(document))


def require_tame(text):
    text.encode()
    assert "\x1b" not in text
    assert "\u202e" not in text
