"""Markdown as GitHub reads it: a table stays a table, and names do nothing."""

from __future__ import annotations

import dataclasses
import re

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.page.markdown import escape
from pytest_ldos.show.report import markdown
from pytest_ldos.show.report.compose import compose_infra
from pytest_ldos.show.report.document import Document, Section
from pytest_ldos.show.report.json_text import name_reports
from tests.builders.reports import HOSTILE, full_document, full_section, in_words

PARSER = MarkdownIt("gfm-like", {"html": True, "linkify": True})
ALLOWED_HTML = re.compile(
    r"<!-- pytest-ldos report -->|<details><summary>Details</summary>|</details>|</?sub>", re.DOTALL
)


def flat(tokens: list[Token]):
    for token in tokens:
        yield token
        yield from flat(token.children or [])


def parsed(text: str) -> list[Token]:
    return list(flat(PARSER.parse(text)))


def kinds(text: str) -> list[str]:
    return [token.type for token in parsed(text)]


def on(stack: str, verdict: Verdict = Verdict.PASSED) -> Document:
    return Document(sections=(Section(scenario="reach", verdict=verdict, stack=stack),))


def test_the_first_line_names_the_stack_that_was_measured():
    assert "\n## ✅ ldos on ros2-mock: passed\n" in markdown.render(on("ros2-mock"))
    infra = Document(sections=(compose_infra("reach", ["no ROS 2"], stack="ros2"),))
    assert "\n## ❌ ldos on ros2: infra\n" in markdown.render(infra)


def test_several_machines_may_measure_several_stacks():
    reports = name_reports([on("ros2-mock"), on("embedded"), on("ros2-mock")], ["a", "b", "c"])
    assert "\n## ✅ ldos on ros2-mock and embedded: passed\n" in markdown.render_several(reports)


def test_verdict_comes_first_then_changes_and_advice():
    text = markdown.render(full_document())
    assert text.startswith(f"{markdown.MARK}\n\n## ❌ ldos: regressed\n")
    order = [
        "## ❌",
        "| scenario |",
        "### msg",
        "**What moved**",
        "**What to do**",
        "**Minimum detectable",
        "| metric |",
        "<details>",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "T1 planning latency +40.0 % (+30.0 % … +50.0 %), 10.5 ms → 14.2 ms" in text
    assert "transport\\: /joint" not in text
    assert "80 % of it in transport: /joint\\_states → /robot" in text


def test_numbers_are_readable_as_text():
    row = next(line for line in markdown.render(full_document()).splitlines() if line.startswith("| T1 "))
    assert row == "| T1 planning latency | 10.5 ms | 14.2 ms | +40.0 % | +30.0 % … +50.0 % | 12.0 % | ❌ regressed |"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_does_not_change_the_document(text):
    """The same blocks as with harmless words, one for one."""
    rendered = markdown.render(in_words(full_document(), text))
    rendered.encode()
    harmless = markdown.render(in_words(full_document(), "name" if text.strip() else text))
    blocks = [token.type for token in PARSER.parse(rendered)]
    assert blocks == [token.type for token in PARSER.parse(harmless)]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_escaped(text):
    tokens = parsed(markdown.render(in_words(full_document(), text)))
    types = {token.type for token in tokens}
    assert not types & {"link_open", "image", "code_inline", "code_block", "fence", "em_open", "s_open", "heading_6"}
    for token in tokens:
        if token.type in {"html_block", "html_inline"}:
            assert not ALLOWED_HTML.sub("", token.content).strip()


@pytest.mark.parametrize("text", ["a\n::error::x", "::error::x", "##[error]x"])
def test_no_line_is_a_workflow_command(text):
    lines = markdown.render(in_words(full_document(), text)).splitlines()
    assert not [line for line in lines if line.lstrip().startswith("::") or "##[" in line]


def test_text_is_shown_as_written():
    name = "a|b <i>*x*</i> `y` [z](q) #1 @me $k$ 1_2_3 &amp; ~~s~~ https://evil.example"
    shown = "".join(token.content for token in parsed(f"- {escape(name)}") if token.type.startswith("text"))
    assert shown.replace("\u2060", "") == name


def test_mentions_are_escaped():
    text = escape("ask @everyone, @org/team and me@evil.example about owner/repo#12, #13, GH-14 or gh-15")
    shown = "".join(token.content for token in parsed(text) if token.type.startswith("text"))
    assert not re.search(r"@[\w]|#\d|gh-\d", shown, re.IGNORECASE)


def test_overlong_comment_omits_the_details():
    notes = tuple(f"note {number}: {'x' * 200}" for number in range(400))
    text = markdown.render(Document(sections=(full_section(notes=notes),)))
    assert len(text) < 65_536
    assert "| T1 planning latency |" in text
    assert "The details are left out" in text
    many = markdown.render(Document(sections=tuple(full_section(scenario=f"s{number}") for number in range(200))))
    assert len(many) < 65_536
    assert many.endswith("too long for a comment.\n")


def test_long_sentences_and_lists_are_shortened():
    reasons = tuple(f"{number} {'y' * 2000}" for number in range(30))
    text = markdown.render(Document(sections=(full_section(reasons=reasons),)))
    assert "y" * 601 not in text
    assert "- … and 18 more" in text


def test_nothing_judged():
    section = dataclasses.replace(full_section(), verdict=None, metrics=(), paths=())
    assert "## ldos: not judged" in markdown.render(Document(sections=(section,)))
