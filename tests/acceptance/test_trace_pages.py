"""Pages of traces are accessible by axe-core's rules: whole and damaged ones, and two versions side by side."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.builders.command_line import invoke_ldos
from tests.oracles import axe, chromium

pytestmark = [
    pytest.mark.skipif(chromium.PROGRAM is None, reason=chromium.REASON),
    pytest.mark.skipif(not axe.IS_THERE, reason=axe.REASON),
]

PATHS = '[[tool.ldos.paths]]\nname = "whole"\nvia = ["/src_a", "/sync_out"]\ndeadline_ms = 12.2\n'

PAGES = {
    "whole": (["pipeline_multi_links"], []),
    "with goals": (["workspace_mock"], []),
    "cut": (["truncated_cut"], []),
    "with lost events": (["discarded"], []),
    "two versions": (["pipeline_single", "pipeline_single_links"], ["pipeline_multi_links"]),
}


def make_page(golden, names) -> Path:
    Path("pyproject.toml").write_text(PATHS)
    traces, bases = ([golden(each) for each in some] for some in names)
    invoke_ldos("analyze", *traces, *(["--against", *bases] if bases else []), "--output", "trace.html")
    return Path("trace.html").resolve()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("names", PAGES.values(), ids=PAGES)
def test_axe_finds_nothing(golden, tmp_path, monkeypatch, names, scheme):
    monkeypatch.chdir(tmp_path)
    assert axe.violations(make_page(golden, names), tmp_path, scheme=scheme) == []


def test_axe_finds_what_is_wrong(golden, tmp_path, monkeypatch):
    """An image without a text and an illegible grey, added to the same page."""
    monkeypatch.chdir(tmp_path)
    page = make_page(golden, PAGES["cut"])
    text = page.read_text("utf-8")
    assert len(re.findall(r"<main[^>]*>", text)) == 1
    planted = '<svg role="img" width="9" height="9"></svg><p style="color: #999; background: #fff">grey</p>'
    page.write_text(re.sub(r"(<main[^>]*>)", rf"\1{planted}", text), "utf-8")
    assert {"svg-img-alt", "color-contrast"} <= {rule for rule, _ in axe.violations(page, tmp_path, scheme="light")}
