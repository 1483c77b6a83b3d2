"""Artifacts of several machines: none takes the place of another's, whatever it and its files are called."""

from __future__ import annotations

import io
import re
import zipfile

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report import json_text
from pytest_ldos.show.report.document import Document, Section
from tests.builders.reports import full_document, version
from tests.builders.scratch import ROOT
from tests.project.workflow_runs.conftest import LABELS

HONEST, FORGED = "honest-cpu", "forged-cpu"
MEASURE = """
sh "${0%/*}/measure-of-ours" "$@" || exit
[ "${1:-}" = pack ] || exit 0
if grep -q forged-cpu results/result.json; then
  for place in ldos-lab-a ldos-lab-b result-ldos-lab-a result-ldos-lab-b; do
    mkdir -p "results/packed/result/$place"
    cp results/result.json "results/packed/result/$place/"
  done
  for place in 0 z; do head -c 4000000 /dev/urandom >"results/packed/result/$place"; done
fi
"""
"""A machine of a certain class leaves its result below the names of all, and so much that it is unpacked last."""
LEAVES_NOTHING = """
if grep -q honest-cpu results/result.json; then
  rm -r results/packed/result
fi
"""


def of_class(name: str) -> Document:
    section = Section(scenario="msg_load", verdict=Verdict.PASSED, head=version("this run", host_class=name))
    return full_document(sections=(section,))


def measured_by(world, script: str = "") -> str:
    """A commit, and what two machines leave of it whose measured code has taken the script over."""
    if script:
        ours = (ROOT / ".ci" / "measure").read_text("utf-8")
        world.scratch.commit("main", {".ci/measure-of-ours": ours, ".ci/measure": script})
    commit = world.scratch.commit("topic", {}, onto="main")
    world.measures(commit, of_class(HONEST), of_class(FORGED))
    return commit


def comment(world) -> str:
    """Comment that the job without rights has made."""
    with zipfile.ZipFile(io.BytesIO(world.artifacts.artifacts["made"])) as archive:
        return archive.read("comment.md").decode()


def shown(world) -> list[str]:
    """Classes in the table of results."""
    return re.findall(r"^\| (\S+) \| msg", comment(world), re.MULTILINE)


def test_files_of_equal_name_are_shown_with_their_machines(world):
    run = world.merge_group(measured_by(world))
    assert run.results["post"] == ["success"], run.log
    assert sorted(shown(world)) == [FORGED, HONEST]
    pages = re.findall(r"\[full report\]\((\S+)\)", comment(world))
    assert len({*pages}) == 2
    assert [each["body"] for each in world.github.comments] == [comment(world)]


def test_files_below_another_machine_s_name(world):
    world.merge_group(measured_by(world, MEASURE))
    assert sorted(shown(world)) == [FORGED, HONEST]


def test_files_below_the_name_of_a_machine_without_results(world):
    """One artifact alone would be unpacked without a folder of its own."""
    run = world.merge_group(measured_by(world, MEASURE + LEAVES_NOTHING))
    assert run.results["render"] == ["failure"], "one machine left no result"
    assert comment(world).count("❌ No result came from ldos-lab-") == 1
    assert comment(world).count(FORGED) == 1


def test_no_machine_has_results(world):
    world.merge_group(measured_by(world, MEASURE + "rm -r results/packed/result\n"))
    assert "nothing was measured" in comment(world)
    assert all(f"No result came from {label}" in comment(world) for label in LABELS)


NAMES = (
    "result-ldos-lab-c",
    "result-ldos-lab-a ",
    "result-LDOS-LAB-A",
    "result-..",
    "result-$(touch owned)",
    "result-\n::error::owned",
)
PATHS = (
    "result.json",
    "ldos-lab-a/result.json",
    "result-ldos-lab-a/result.json",
    "../result-ldos-lab-a/result.json",
    "../result-ldos-lab-b/result.json",
    "../../comment.md",
    "/tmp/owned",
)


def test_unrequested_artifacts(world, tmp_path):
    """Made as by somebody with the run's own token, with names and paths that no action would take."""
    text = json_text.render(of_class("evil-cpu"))
    evil = archive({path.replace("/tmp", str(tmp_path)): text for path in PATHS})
    world.artifacts.artifacts.update(dict.fromkeys(NAMES, evil))
    run = world.merge_group(measured_by(world))
    assert run.results["post"] == ["success"], run.log
    assert sorted(shown(world)) == [FORGED, HONEST]
    assert "evil-cpu" not in comment(world)
    assert not [*tmp_path.rglob("*owned")]


def archive(files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    return content.getvalue()
