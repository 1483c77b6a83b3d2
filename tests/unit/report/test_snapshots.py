"""Comment, job summary and annotations of one result, word for word."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from tests.builders.report_snapshots import FOLDER, URLS, render_snapshots

PARSER = MarkdownIt("gfm-like", {"html": True, "linkify": True})


@pytest.mark.parametrize("name", sorted(render_snapshots()))
def test_what_people_read(name):
    """After a change that is meant: python -m tests.builders.report_snapshots."""
    assert (FOLDER / name).read_text("utf-8") == render_snapshots()[name]


def test_the_files_are_those():
    assert sorted(file.name for file in FOLDER.iterdir()) == sorted(render_snapshots())


@pytest.mark.parametrize("name", ["harmless.comment.md", "hostile.comment.md"])
def test_no_link_but_ours(name):
    tokens = [child for token in PARSER.parse(render_snapshots()[name]) for child in token.children or []]
    links = [token.attrs["href"] for token in tokens if token.type == "link_open"]
    assert links == list(URLS.values())
    assert not [token for token in tokens if token.type == "image"]


def test_both_have_the_same_headings():
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
