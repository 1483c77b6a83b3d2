"""Checks that version, changelog and tag agree.

Usage: python3 .ci/check_release.py [TAG], in the project's folder. Without a tag, the changelog must have a place for
what comes; with one, a dated section for the version that the tag names.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_VERSION: Final = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
_URLS: Final = ("Source", "Documentation", "Changelog", "Issues")
_KINDS: Final = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
"""Headings of https://keepachangelog.com."""

_HEADING: Final = re.compile(r"## \[(?P<name>[^\]]+)\](?: - (?P<date>\d{4}-\d\d-\d\d))?")


def find_faults(root: Path, tag: str = "") -> Iterator[str]:
    """Mismatches, each with a remedy."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    version = project["version"]
    lines = (root / "CHANGELOG.md").read_text("utf-8").splitlines()
    headings = [found for line in lines if (found := _HEADING.fullmatch(line))]
    for line in lines:
        if line.startswith("## ") and not _HEADING.fullmatch(line):
            yield f"CHANGELOG.md: {line!r} is no heading of a version: write ## [{version}] - YYYY-MM-DD"
        if line.startswith("### ") and line[4:] not in _KINDS:
            yield f"CHANGELOG.md: {line!r} is no kind of change: write one of {', '.join(_KINDS)}"
    dates = {found["name"]: found["date"] for found in headings}
    if not _VERSION.fullmatch(version):
        yield f"pyproject.toml: version {version!r} is none: write MAJOR.MINOR.PATCH"
    if len(dates) != len(headings):
        yield "CHANGELOG.md: two sections are for one version: join them"
    if "Unreleased" not in dates and version not in dates:
        yield f"CHANGELOG.md: there is no section for {version}: write ## [Unreleased], or ## [{version}] - YYYY-MM-DD"
    if tag:
        yield from _faults_of_tag(tag, version, dates)
        missing = [name for name in _URLS if not project.get("urls", {}).get(name)]
        if missing:
            yield f"pyproject.toml: [project.urls] lacks {', '.join(missing)}: write the repository's addresses"


def _faults_of_tag(tag: str, version: str, dates: dict[str, str | None]) -> Iterator[str]:
    if tag != f"v{version}":
        yield f"tag {tag!r} is not the version's: pyproject.toml has {version}, so it must be v{version}"
    if not dates.get(version):
        yield f"CHANGELOG.md: nothing is released as {version}: rename ## [Unreleased] to ## [{version}] - YYYY-MM-DD"


if __name__ == "__main__":
    faults = list(find_faults(Path(), *sys.argv[1:2]))
    for fault in faults:
        sys.stderr.write(f"check_release: {fault}\n")
    sys.exit(bool(faults))
