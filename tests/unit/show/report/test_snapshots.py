"""Comment, job summary and annotations of one result, word for word."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from pytest_ldos.show.report import markdown, workflow_commands
from pytest_ldos.show.report.json_text import name_reports
from tests.builders.report_snapshots import FOLDER, OTHER_PAGE, URLS, hostile_fleet, render_snapshots

PARSER = MarkdownIt("gfm-like", {"html": True, "linkify": True})


@pytest.mark.parametrize("name", sorted(render_snapshots()))
def test_report_for_people(name):
    """After a change that is meant: python -m tests.builders.report_snapshots."""
    assert (FOLDER / name).read_text("utf-8") == render_snapshots()[name]


def test_snapshots_are_complete():
    assert sorted(file.name for file in FOLDER.iterdir()) == sorted(render_snapshots())


@pytest.mark.parametrize("name", ["harmless.comment.md", "hostile.comment.md"])
def test_only_the_projects_links_occur(name):
    tokens = [child for token in PARSER.parse(render_snapshots()[name]) for child in token.children or []]
    links = [token.attrs["href"] for token in tokens if token.type == "link_open"]
    assert links == list(URLS.values())
    assert not [token for token in tokens if token.type == "image"]


def test_snapshots_have_the_same_headings():
    """A commit message that brings its own adds none."""
    found = [
        [
            (token.tag, token.map is not None)
            for token in PARSER.parse(render_snapshots()[name])
            if token.type == "heading_open"
        ]
        for name in ("harmless.comment.md", "hostile.comment.md")
    ]
    assert found[0][:2] == found[1] == [("h2", True), ("h3", True)]


def _parsed(text):
    return [child for token in PARSER.parse(text) for child in [token, *(token.children or [])]]


def test_fleet_has_one_verdict_then_a_section_per_host_class_worst_first():
    text = render_snapshots()["fleet.comment.md"]
    lines = [line for line in text.splitlines() if line.startswith("## ")]
    assert lines == [
        "## ❌ ldos: regressed",
        "## ❌ test-cpu\\_4-cores: regressed",
        "## ❌ unknown host class (received/dead/result.json): infra",
        "## ✅ other-cpu\\_32-cores: passed",
    ]
    assert text.count(markdown.MARK) == 1
    links = [token.attrs["href"] for token in _parsed(text) if token.type == "link_open"]
    assert links == [*URLS.values(), OTHER_PAGE]


def test_hostile_machine_name_is_escaped():
    text = markdown.render_several(name_reports(hostile_fleet(), ("a", "b", "c")))
    tokens = _parsed(text)
    assert not [token for token in tokens if token.type in {"link_open", "image"}]
    assert {token.content for token in tokens if token.type == "html_inline"} == {"<sub>", "</sub>"}
    blocks = {token.content.strip() for token in tokens if token.type == "html_block"}
    assert {block.split(">")[0] for block in blocks} == {"<!-- pytest-ldos report --", "<details", "</details"}
    headings = [token.tag for token in tokens if token.type == "heading_open"]
    assert headings == ["h2", *["h2", "h3"] * 3]
    assert {len(line.replace("\\|", "").split("|")) for line in text.splitlines()[4:9]} == {7}


def test_hostile_machine_name_is_no_workflow_command():
    lines = workflow_commands.render_several(name_reports(hostile_fleet(), ("a", "b", "c"))).splitlines()
    assert len(lines) == 3
    assert all(
        line.startswith("::error file=tests/scenarios/test_msg_load.py,line=12,title=ldos%3A ") for line in lines
    )
    assert all(line.count("::") == 2 for line in lines)
