"""Pages of the documentation, read as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
PAGES: Final = tuple(sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts))


def links_of(page: Path) -> Iterator[str]:
    """Targets of a page's links to files and headings."""
    for token in MarkdownIt("gfm-like").parse(page.read_text("utf-8")):
        for child in token.children or ():
            target = str(child.attrs.get("href", ""))
            if target and not re.match(r"[a-z]+:", target):
                yield target


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """Anchors of a page's headings, as GitHub and MyST make them."""
    tokens = MarkdownIt("gfm-like").parse(page.read_text("utf-8"))
    titles = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)
