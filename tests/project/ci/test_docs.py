"""Pages of the documentation: their links, and files of the repository that they name."""

from __future__ import annotations

import re

import pytest

from docs.accessible import make_accessible
from docs.links import link_files
from docs.smaller import make_smaller
from tests.builders.docs_pages import DOCS, PAGES, ROOT, anchors_of, links_of


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_every_link_leads_somewhere(page):
    """As readers on GitHub follow it: to a file of the repository, and to a heading of a page."""
    for target in links_of(page):
        path, _, part = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if part and file.suffix == ".md":
            assert part in anchors_of(file), target


def test_every_page_is_in_a_tree_or_is_a_decision():
    trees = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
    listed = {
        (page.parent / f"{name}.md").resolve()
        for page in PAGES
        for tree in trees.findall(page.read_text("utf-8"))
        for name in tree.splitlines()
        if name and not name.startswith(":")
    }
    single = {page for page in PAGES if page.parent.name == "decisions" and page.name != "README.md"}
    assert {page for page in PAGES if page not in listed | single} == {DOCS / "index.md"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a page](../a.md)", "[a page](../a.md)"),
        ("[lab](../../lab/README.md#files)", "[lab](https://h/o/n/blob/c/lab/README.md#files)"),
        ("see [x](https://example.org)", "see [x](https://example.org)"),
    ],
)
def test_files_of_the_repository_lead_to_its_address(text, expected):
    page = DOCS / "how-to" / "index.md"
    assert link_files(text, page=page, root=ROOT, address="https://h/o/n/blob/c") == expected


def test_without_an_address_files_are_named():
    page = DOCS / "how-to" / "index.md"
    assert link_files("[lab/README.md](../../lab/README.md)", page=page, root=ROOT, address="") == "`lab/README.md`"
    assert link_files("[the lab](../../lab/README.md)", page=page, root=ROOT, address="") == "the lab (`lab/README.md`)"
    with pytest.raises(FileNotFoundError, match=r"there is no \.\./\.\./lab/NONE"):
        link_files("[the lab](../../lab/NONE)", page=page, root=ROOT, address="")


def test_missing_accessibility_attributes_are_added_once():
    page = '<aside class="toc-drawer"></aside><pre>x</pre>'
    better = '<aside class="toc-drawer" aria-label="This page"></aside><pre tabindex="0">x</pre>'
    assert make_accessible(page) == better
    assert make_accessible(better) == better


def test_empty_symbols_and_indentation_are_removed():
    page = '<symbol id="a"><svg/></symbol>\n   <symbol id="b">x</symbol>\n\n  <use href="#b"></use><pre>\n  as it\n   stands</pre>'
    small = '\n<symbol id="b">x</symbol>\n<use href="#b"></use><pre>\n  as it\n   stands</pre>'
    assert make_smaller(page) == small
    assert make_smaller(small) == small
