"""Digests of folders: everything that counts changes them, and a file that did not change is not read again."""

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
def test_what_counts(folder, change):
    before = digest(folder)
    change(folder)
    assert digest(folder) != before


def test_what_does_not_count(folder):
    before = digest(folder)
    (folder / "lib/__pycache__").mkdir()
    (folder / "lib/__pycache__/arm.pyc").write_text("compiled")
    (folder / "left out").write_text("")
    os.utime(folder / "lib/libarm.so", ns=(LONG_AGO_NS, LONG_AGO_NS))
    assert digest(folder, skip=lambda path, is_folder: path.endswith("/left out")) == before


def test_equal_folders_have_equal_digests_wherever_they_lie(folder, tmp_path):
    other = tmp_path / "elsewhere/prefix"
    other.parent.mkdir()
    before = digest(folder)
    folder.rename(other)
    assert digest(other) == before


def test_what_links_lead_to_counts_and_circles_end(folder, tmp_path):
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "file").write_text("one")
    (folder / "sources").symlink_to(sources)
    (sources / "back").symlink_to(folder)
    before = digest(folder)
    (sources / "file").write_text("two")
    assert digest(folder) != before


def test_a_file_that_did_not_change_is_not_read_again(folder, monkeypatch):
    """Not even in another process: the cache says that it is what it was."""
    monkeypatch.setattr("pytest_ldos.host.checkout._RECENT_NS", -1)
    first = FileDigests(folder.parent / "digests.json")
    known = first.of_folder(folder)
    first.save()
    monkeypatch.setattr("hashlib.file_digest", lambda *_: pytest.fail("it is read again"))
    assert digest(folder) == known


def test_a_file_that_has_just_changed_is_read_again(folder):
    """It may change once more within one tick of the file system's clock."""
    first = FileDigests(folder.parent / "digests.json")
    before = first.of_folder(folder)
    first.save()
    found = (folder / "lib/libarm.so").stat()
    (folder / "lib/libarm.so").write_text("two")
    os.utime(folder / "lib/libarm.so", ns=(found.st_atime_ns, found.st_mtime_ns))
    assert digest(folder) != before


def test_a_cache_that_cannot_be_read_is_not_used(folder):
    before = digest(folder)
    (folder.parent / "digests.json").write_text("{")
    assert digest(folder) == before
