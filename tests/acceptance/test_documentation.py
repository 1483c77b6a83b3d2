"""The site as it is built: whole, small, usable without scripts, and accessible."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.oracles import axe, chromium

ROOT = Path(__file__).parents[2]
PICTURES = {".svg", ".png", ".gif", ".jpg"}
LARGEST = 5_000_000
"""Bytes of the site without pictures."""


class Page(HTMLParser):
    """Targets and anchors of a page, and its text outside of scripts."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.text = ""
        self._hidden = 0
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.targets += [each for name in ("href", "src") if (each := given.get(name))]
        self.anchors |= {each for name in ("id", "name") if (each := given.get(name))}
        self._hidden += tag in {"script", "style"}

    def handle_endtag(self, tag):
        self._hidden -= tag in {"script", "style"}

    def handle_data(self, data):
        if not self._hidden:
            self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Built with warnings as errors."""
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "PYTHONWARNINGS": "default"}
    for arguments in (
        ["docs.figures"],
        ["sphinx", "-W", "--keep-going", "-q", "-d", str(folder / "doctrees"), "docs", str(folder / "html")],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_link_within_the_site_leads_somewhere(site):
    pages = {file: Page(file) for file in site.rglob("*.html")}
    assert len(pages) > 150
    broken = []
    for file, page in pages.items():
        for target in page.targets:
            if re.match(r"[a-z]+:", target) or target.startswith("//"):
                continue
            path, _, part = unquote(target).partition("#")
            leads = (file.parent / path.partition("?")[0]).resolve() if path else file
            if not leads.exists() or (part and leads in pages and part not in pages[leads].anchors):
                broken.append(f"{file.relative_to(site)}: {target}")
    assert broken == []


def test_pages_work_without_scripts(site):
    assert "A calibration learns how much trials" in Page(site / "how-to/calibrate.html").text
    assert "read_trace" in Page(site / "reference/api.html").text
    home = Page(site / "index.html")
    assert {"how-to/index.html", "reference/index.html", "troubleshooting/index.html"} <= {*home.targets}


def test_site_loads_nothing_from_other_hosts(site):
    fetched = re.compile(r"<(?:script|link|img)[^>]+(?:src|href)=\"(?:https?:)?//")
    assert [file.name for file in site.rglob("*.html") if fetched.search(file.read_text("utf-8"))] == []


def test_site_is_small(site):
    files = [file for file in site.rglob("*") if file.is_file() and file.suffix not in PICTURES]
    assert sum(file.stat().st_size for file in files) <= LARGEST
    assert (site / "searchindex.js").is_file(), "the search works offline"


@pytest.mark.skipif(chromium.PROGRAM is None, reason=chromium.REASON)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "page",
    [
        "index.html",
        "how-to/sweep-a-setting.html",
        "reference/api.html",
        "reference/toml.html",
        "explanation/verdicts.html",
        "troubleshooting/messages.html",
        "decisions/001-decode-in-two-passes.html",
        "search.html",
    ],
)
def test_axe_finds_nothing(site, tmp_path, page, scheme):
    assert axe.violations(site / page, tmp_path, scheme=scheme) == []
