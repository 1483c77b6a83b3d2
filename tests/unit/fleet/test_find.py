"""Search for separate traces below a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ldos.fleet.traces import find_traces


@pytest.fixture
def make(tmp_path):
    def make_metadata(*places):
        for place in places:
            (tmp_path / place).mkdir(parents=True)
            (tmp_path / place / "metadata").touch()
        return tmp_path

    return make_metadata


def names(root, found):
    return [str(each.path.relative_to(root)) for each in found]


def test_session_is_one_trace(make):
    root = make("s/ust/uid/0/64-bit", "s/ust/uid/1000/32-bit", "s/kernel", "s/ust/pid/a-1-2026", "s/ust/pid/b-2-2026")
    assert names(root, find_traces([root])) == ["s"]
    assert names(root, find_traces([root / "s"])) == ["s"]


def test_chunks_of_a_rotated_session_are_one_trace(make):
    chunks = [f"s/archives/2026112{day}T0-{day}/ust/uid/0/64-bit" for day in (1, 2)]
    root = make(*chunks, "s/ust/uid/0/64-bit", "s/archives/20261121T0-3/kernel")
    assert names(root, find_traces([root])) == ["s"]


def test_named_part_of_a_session_is_kept(make):
    root = make("s/ust/pid/a-1-2026", "s/ust/pid/b-2-2026", "s/kernel")
    assert names(root, find_traces([root / "s" / "ust"])) == ["s/ust"]
    assert names(root, find_traces([root / "s" / "kernel"])) == ["s/kernel"]


def test_run_folders(make):
    root = make(
        "runs/1/baseline/trace/ust/uid/0/64-bit",
        "runs/1/msg_load/trace/ust/uid/0/64-bit",
        "runs/2/baseline/blocks/1-base/trace/ust/uid/0/64-bit",
        "runs/2/baseline/blocks/2-head/trace/ust/uid/0/64-bit",
    )
    assert names(root, find_traces([root / "runs"])) == [
        "runs/1/baseline/trace",
        "runs/1/msg_load/trace",
        "runs/2/baseline/blocks/1-base/trace",
        "runs/2/baseline/blocks/2-head/trace",
    ]


def test_both_halves_of_a_dual_session_are_one_trace(make):
    """As recorded by ``ros2 trace --dual-session``; LTTng creates a folder per snapshot."""
    dual = ["s/snapshot/snapshot-1-20261121-104512-0/ust/uid/0/64-bit", "s/runtime/ust/uid/0/64-bit"]
    root = make(*dual, "t/ust/uid/0/64-bit")
    assert names(root, find_traces([root])) == ["s", "t"]
    assert names(root, find_traces([root / "s"])) == ["s"]
    assert names(root, find_traces([root / "s" / "runtime"])) == ["s/runtime"]


def test_folder_named_like_a_dual_session_is_separate(make):
    root = make(
        "a/snapshot/ust/uid/0/64-bit", "a/other/ust/uid/0/64-bit", "b/snapshot-1-2026/kernel", "b/runtime/kernel"
    )
    assert names(root, find_traces([root])) == ["a/other", "a/snapshot", "b/runtime", "b/snapshot-1-2026"]


def test_plain_traces_are_separate_unless_nested(make):
    root = make("a", "b")
    assert names(root, find_traces([root])) == ["a", "b"]
    assert names(root, find_traces([root], together=True)) == ["."]


def test_trace_behind_several_links_is_found_once(make):
    root = make("a")
    (root / "circle").symlink_to(root)
    (root / "link").symlink_to(root / "a")
    assert names(root, find_traces([root, root / "a", root])) == ["a"]


def test_names_are_the_given_paths(make, monkeypatch):
    monkeypatch.chdir(make("runs/a"))
    (found,) = find_traces([Path("./runs")])
    assert found.name == "runs/a"
    assert found.path.is_absolute()


def test_places_without_a_trace_have_a_reason(make):
    root = make("a")
    (root / "empty").mkdir()
    (root / "file").touch()
    found = find_traces([root / "a", root / "empty", root / "file", root / "nothing"])
    assert [each.problem for each in found] == [
        "",
        "no trace in it (no file named `metadata` anywhere below)",
        "is a file, and no archive of a trace",
        "there is no such directory",
    ]


def test_archives_are_separate_traces(make):
    root = make("runs/a")
    (root / "runs" / "b.tar.zst").touch()
    (root / "runs" / "more").mkdir()
    (root / "runs" / "more" / "c.zip").touch()
    assert names(root, find_traces([root / "runs"])) == ["runs/a", "runs/b.tar.zst", "runs/more/c.zip"]
    assert names(root, find_traces([root / "runs" / "b.tar.zst"])) == ["runs/b.tar.zst"]


def test_address_is_its_name():
    (found,) = find_traces([Path("s3://bucket/a.tar.zst")])
    assert (found.name, found.path, found.problem) == ("s3://bucket/a.tar.zst", Path("s3://bucket/a.tar.zst"), "")


LISTING = """
import sys
from pathlib import Path
from pytest_ldos.fleet.traces import find_traces
for each in find_traces([Path(sys.argv[1])]):
    print(each.path.name, each.problem)
"""


@pytest.mark.skipif(
    os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may list everything without setpriv"
)
def test_unreadable_folder_is_a_row(make):
    root = make("a", "closed")
    (root / "closed").chmod(0)
    as_anybody = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    command = [*as_anybody, sys.executable, "-c", LISTING, root]
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    finally:
        (root / "closed").chmod(0o755)
    assert output.splitlines() == ["a ", "closed Permission denied"]
