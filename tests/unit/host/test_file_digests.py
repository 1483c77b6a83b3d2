"""Digests of folders, and their cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_ldos.host.checkout import FileDigests

LONG_AGO_NS = 1_600_000_000_000_000_000


@pytest.fixture
def folder(tmp_path) -> Path:
    place = tmp_path / "prefix"
    (place / "lib").mkdir(parents=True)
    (place / "lib/libarm.so").write_text("one")
    (place / "lib/link").symlink_to("libarm.so")
    return place


def digest(folder: Path, **settings) -> str:
    return FileDigests(folder.parent / "digests.json").of_folder(folder, **settings)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "lib/libarm.so").write_text("two"),
        lambda folder: (folder / "lib/libarm.so").chmod(0o755),
        lambda folder: (folder / "lib/libarm.so").rename(folder / "lib/libleg.so"),
        lambda folder: (folder / "new").write_text(""),
        lambda folder: ((folder / "lib/link").unlink(), (folder / "lib/link").symlink_to("gone")),
    ],
    ids=["content", "mode", "name", "new file", "link"],
)
def test_relevant_changes_change_the_digest(folder, change):
    before = digest(folder)
    change(folder)
    assert digest(folder) != before


def test_irrelevant_changes_keep_the_digest(folder):
    before = digest(folder)
    (folder / "lib/__pycache__").mkdir()
    (folder / "lib/__pycache__/arm.pyc").write_text("compiled")
    (folder / "left out").write_text("")
    os.utime(folder / "lib/libarm.so", ns=(LONG_AGO_NS, LONG_AGO_NS))
    assert digest(folder, skip=lambda path, is_folder: path.endswith("/left out")) == before


def test_digest_is_independent_of_the_path(folder, tmp_path):
    other = tmp_path / "elsewhere/prefix"
    other.parent.mkdir()
    before = digest(folder)
    folder.rename(other)
    assert digest(other) == before


def test_link_targets_count_and_cycles_end(folder, tmp_path):
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "file").write_text("one")
    (folder / "sources").symlink_to(sources)
    (sources / "back").symlink_to(folder)
    before = digest(folder)
    (sources / "file").write_text("two")
    assert digest(folder) != before


def test_unchanged_file_is_not_read_again(folder, monkeypatch):
    """Even in another process, due to the cache."""
    monkeypatch.setattr("pytest_ldos.host.checkout._RECENT_NS", -1)
    first = FileDigests(folder.parent / "digests.json")
    known = first.of_folder(folder)
    first.save()
    monkeypatch.setattr("hashlib.file_digest", lambda *_: pytest.fail("it is read again"))
    assert digest(folder) == known


def test_recently_changed_file_is_read_again(folder):
    """It may change again within one tick of the file system's clock."""
    first = FileDigests(folder.parent / "digests.json")
    before = first.of_folder(folder)
    first.save()
    found = (folder / "lib/libarm.so").stat()
    (folder / "lib/libarm.so").write_text("two")
    os.utime(folder / "lib/libarm.so", ns=(found.st_atime_ns, found.st_mtime_ns))
    assert digest(folder) != before


def test_unreadable_cache_is_ignored(folder):
    before = digest(folder)
    (folder.parent / "digests.json").write_text("{")
    assert digest(folder) == before
