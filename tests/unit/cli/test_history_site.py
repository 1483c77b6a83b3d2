"""``ldos history --site``: a folder in which only files of ours are written and removed."""

from __future__ import annotations

import dataclasses
import json
import resource
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError, LdosError, NotWritten
from pytest_ldos.cli import history as history_command
from pytest_ldos.judge.baseline.history import HistoryStore
from tests.builders.command_line import invoke_ldos
from tests.builders.git import git
from tests.builders.history import add_run, commit
from tests.builders.trials import FINGERPRINT

URL = "https://github.example/owner/robot"
MANIFEST = "ldos-site.json"


@pytest.fixture
def history(tmp_path, monkeypatch):
    """Two scenarios in one place, in a folder outside of git."""
    for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDOS_HISTORY", "history")
    store = HistoryStore(tmp_path / "history")
    add_run(store, 0)
    add_run(store, 1, name="msg_load")
    return store


def make(*arguments) -> dict[str, bytes]:
    """The files of a site."""
    invoke_ldos("history", "--site", "site", *arguments)
    return {file.name: file.read_bytes() for file in Path("site").iterdir()}


def pages(files: dict[str, bytes], scenario: str) -> list[str]:
    return [content.decode() for name, content in files.items() if name.startswith(f"{scenario}-")]


def refusal(*arguments, kind: type[LdosError] = ConfigurationError) -> str:
    with pytest.raises(kind) as caught:
        make(*arguments)
    assert caught.value.remedy
    return str(caught.value)


def test_a_page_for_each_scenario_and_a_badge(history):
    files = make()
    assert {"index.html", "badge.svg", "badge.json", MANIFEST} < files.keys()
    assert len(files) == 6
    assert len(pages(files, "baseline")) == len(pages(files, "msg-load")) == 1
    assert set(json.loads(files[MANIFEST])["files"]) == files.keys() - {MANIFEST}
    assert make() == files


@pytest.mark.acceptance
def test_host_classes_are_separate(history):
    add_run(history, 2, fingerprint=dataclasses.replace(FINGERPRINT, cpu_model="another"))
    assert len(pages(make(), "baseline")) == 2


def test_only_requested_series_are_shown(history):
    files = make("--scenario", "msg_load")
    assert not pages(files, "baseline")
    assert commit(0).encode() not in files["index.html"]


@pytest.mark.acceptance
def test_site_shows_more_commits_than_a_terminal_by_default(history, monkeypatch):
    monkeypatch.setattr(history_command, "_SHOWN", 1)
    add_run(history, 2)
    assert commit(0) in pages(make("--scenario", "baseline"), "baseline")[0]
    assert commit(0) not in pages(make("--scenario", "baseline", "--last", "1"), "baseline")[0]


@pytest.mark.acceptance
def test_links_to_commits_and_pull_requests(history, monkeypatch):
    git(Path(), "init", "--quiet")
    git(Path(), "commit", "--quiet", "--allow-empty", "--message=Plan <b>faster</b> (#12)")
    there = git(Path(), "rev-parse", "--short=12", "HEAD").strip()
    add_run(history, 2, commit=there)
    (page,) = pages(make("--repository", URL), "baseline")
    assert f'<a href="{URL}/commit/{there}">' in page
    assert f'<a href="{URL}/pull/12">#12</a> <bdi>Plan &lt;b&gt;faster&lt;/b&gt; (#12)</bdi>' in page
    assert "https://" not in pages(make(), "baseline")[0]
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/robot")
    assert pages(make(), "baseline") == [page]


def test_earlier_page_is_removed_and_foreign_files_are_kept(history):
    make()
    Path("site/CNAME").write_text("robot.example")
    files = make("--scenario", "msg_load")
    assert not pages(files, "baseline")
    assert files["CNAME"] == b"robot.example"


@pytest.mark.parametrize("name", ["index.html", "badge.svg"])
def test_foreign_file_is_not_overwritten(history, name):
    Path("site").mkdir()
    Path("site", name).symlink_to("nowhere")
    assert f"site/{name} exists and is not one of our pages" in refusal()
    assert [file.name for file in Path("site").iterdir()] == [name]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"kind": "x", "schema": 1, "files": []}',
        '{"kind": "pytest-ldos history site", "schema": 2, "files": []}',
        '{"kind": "pytest-ldos history site", "schema": 1, "files": ["../kept.html"]}',
        '{"kind": "pytest-ldos history site", "schema": 1, "files": ["/kept.html"]}',
        '{"kind": "pytest-ldos history site", "schema": 1, "files": [".git"]}',
    ],
)
def test_foreign_list_of_files_removes_nothing(history, content):
    Path("site").mkdir()
    Path("kept.html").touch()
    Path("site", MANIFEST).write_text(content)
    assert "does not list the files of a site" in refusal()
    assert Path("kept.html").exists()
    assert [file.name for file in Path("site").iterdir()] == [MANIFEST]


def test_a_file_in_place_of_the_folder(history):
    Path("site").touch()
    assert "site cannot be written" in refusal()


@pytest.mark.acceptance
def test_a_full_disk(history):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
        assert "cannot be written: File too large" in refusal(kind=NotWritten)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(make()) == 6, "what was begun can be finished"


def test_without_a_run_there_is_no_site(history, monkeypatch):
    monkeypatch.setenv("LDOS_HISTORY", "nothing")
    assert "there is no run in the history" in refusal()
    assert not Path("site", "index.html").exists()


def test_a_damaged_record_is_named_and_the_others_are_shown(history):
    next(history.directory.rglob("baseline/*.parquet")).write_bytes(b"PAR1")
    result = invoke_ldos("history", "--site", "site")
    assert "is damaged and left out" in result.stderr
    assert not [*Path("site").glob("baseline-*")]
    assert [*Path("site").glob("msg-load-*")]


def test_unjudged_trials_make_no_green_badge(history):
    assert json.loads(make()["badge.json"])["color"] == "brightgreen"
    add_run(history, 5, verdict="unjudged")
    assert json.loads(make()["badge.json"])["message"] == "unknown"


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("--site", "site", "--metric", "T4"), "a site shows all metrics"),
        (("--repository", URL), "--repository is for the links of a site"),
        (("--site", "site", "--repository", "javascript:alert(1)"), "is not an address"),
    ],
)
def test_incompatible_options_are_refused(history, arguments, printed):
    with pytest.raises(ConfigurationError, match=printed):
        invoke_ldos("history", *arguments)
    assert not Path("site", "index.html").exists()
