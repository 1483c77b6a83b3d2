"""The history as pages: of the default branch's tools and the branch of the history, whatever was measured."""

from __future__ import annotations

import io
import tarfile
import zipfile

import pytest

from tests.project.workflow_runs.conftest import HOME


@pytest.fixture
def archive(world) -> dict[str, str]:
    """The pages after a push to the main branch; that of a pull request, by the subject of its commit."""
    before = world.scratch.head("main")
    commit = world.scratch.commit("main", {}, subject="Plan faster (#12)")
    world.measures(commit)
    assert world.push(commit, before=before).results["keep"] == ["success"]
    run = world.after_verdict(commit)
    assert run.results["make"] == ["success"], run.log
    with zipfile.ZipFile(io.BytesIO(world.artifacts.artifacts["github-pages"])) as artifact:
        assert artifact.namelist() == ["artifact.tar"]
        with tarfile.open(fileobj=io.BytesIO(artifact.read("artifact.tar"))) as packed:
            files = {each.name: packed.extractfile(each) for each in packed if each.isfile()}
            return {name.removeprefix("./"): file.read().decode() for name, file in files.items() if file}


def test_the_history_of_all_machines_is_published(archive):
    """Below the documentation, which a stand-in for make has built."""
    assert archive["index.html"] == "the documentation"
    assert {"history/index.html", "history/badge.svg", "history/badge.json"} <= archive.keys()
    pages = [text for name, text in archive.items() if name.startswith("history/baseline-")]
    assert len(pages) == 2, "one for each class of machines"
    assert all(f'<a href="{HOME}/pull/12">#12</a>' in page for page in pages)
