"""The committed pictures: small, all used, and of the run whose words README quotes."""

from __future__ import annotations

import html
import re

from tests.builders.pages import ROOT

PICTURES = sorted(each for each in (ROOT / "docs/pictures").glob("*.*") if each.suffix in {".png", ".svg"})
LARGEST_BYTES = 200_000


def test_pictures_are_small():
    assert len(PICTURES) >= 5
    assert {each.name: each.stat().st_size for each in PICTURES if each.stat().st_size > LARGEST_BYTES} == {}


def test_each_picture_is_on_a_page():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text("utf-8") for page in pages if "_build" not in page.parts)
    assert [each.name for each in PICTURES if f"pictures/{each.name}" not in text] == []


def test_pictures_load_nothing():
    drawn = [each for each in PICTURES if each.suffix == ".svg"]
    assert drawn
    assert [each.name for each in drawn if re.search(r"url\(\W*http", each.read_text("utf-8"))] == []


def test_readme_quotes_the_run_of_the_pictures():
    svg = (ROOT / "docs/pictures/terminal.svg").read_text("utf-8")
    printed = "".join(html.unescape(re.sub(r"<[^>]+>", "", svg)).split())
    (quoted,) = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    lines = [line.strip() for line in quoted.splitlines() if line.strip() != "…"]
    assert len(lines) >= 3
    assert [line for line in lines if "".join(line.split())[:60] not in printed] == []


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 900
