"""Reports of one result as files to compare with; ``python -m tests.builders.report_snapshots`` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.page.model import Link
from pytest_ldos.show.report import markdown, workflow_commands
from pytest_ldos.show.report.document import Document, Failure, Place, Section
from pytest_ldos.show.report.json_text import name_reports
from tests.builders.reports import full_document, full_section, version

FOLDER = Path(__file__).parents[1] / "unit" / "show" / "report" / "snapshots"
RUN = "https://github.com/arm-makers/arm/actions/runs/1"
URLS = {"page": f"{RUN}/artifacts/2", "trace": f"{RUN}/artifacts/3", "run": RUN}


def harmless() -> Document:
    """A regression, and a scenario that could not be measured."""
    return full_document()


def hostile() -> Document:
    """The same by somebody who chose names of nodes and topics, a branch's and messages to do harm."""
    node = "/robot](https://evil.example)<img src=x onerror=alert(1)> @everyone #1"
    topic = "/joint_states\n::error file=x::owned\n##[error]x | cell | `code`"
    message = "no way\n\n# Approved by @maintainer\n[![ok](https://evil.example/x.png)](https://evil.example)"
    whole = full_section(test=Place(file="tests/a,line=1::b.py", line=7))
    path = whole.paths[0]
    first, *others = path.segments
    named = type(first)(**{**vars(first), "name": f"transport: {topic} → {node}"})
    section = full_section(
        scenario="msg_load\x1b[31m",
        advice=(f"look first at {named.name}",),
        head=version(
            "this run",
            commit="0123456789ab%0A::stop",
            failures=(Failure(outcome="planning_failed", code=-31, goal="reach", message=message, trials=(3,)),),
        ),
        base=version("feature/<script>alert(1)</script>"),
        reasons=(f"3 trials failed: {message}",),
        paths=(type(path)(**{**vars(path), "segments": (named, *others)}),),
        test=whole.test,
    )
    return full_document(sections=(section,))


OTHER_CLASS = "other-cpu_32-cores"
OTHER_PAGE = f"{RUN}/artifacts/4"


def fleet() -> tuple[Document, ...]:
    """A regression on one class of machine, nothing on another, and a machine that did not measure."""
    calm = Section(scenario="msg_load", verdict=Verdict.PASSED, head=version("this run", host_class=OTHER_CLASS))
    dead = Section(scenario="msg_load", verdict=Verdict.INFRA, reasons=("the stack did not start",))
    return full_document(sections=(calm,)), full_document(), full_document(sections=(dead,))


FLEET_FILES = ("received/other/result.json", "received/test/result.json", "received/dead/result.json")


def hostile_fleet() -> tuple[Document, ...]:
    """Machines whose names were chosen to do harm."""
    names = ("x](https://evil.example)\n# Approved", "<img src=x onerror=alert(1)>|@everyone\n::error::owned", "plain")
    return tuple(full_document(sections=(full_section(head=version("this run", host_class=name)),)) for name in names)


def render_snapshots() -> Mapping[str, str]:
    """Each file's content by its name."""
    links = (Link("full report", URLS["page"]), Link("traces, for Perfetto", URLS["trace"]))
    run = Link("the run", URLS["run"])
    found = {}
    for name, document in (("harmless", harmless()), ("hostile", hostile())):
        found[f"{name}.comment.md"] = markdown.render(document, links=(*links, run))
        found[f"{name}.annotations.txt"] = workflow_commands.render(document)
    reports = name_reports(fleet(), FLEET_FILES)
    links_of = {OTHER_CLASS: (Link("full report", OTHER_PAGE),)}
    found["fleet.comment.md"] = markdown.render_several(reports, links=(*links, run), links_of=links_of)
    found["fleet.annotations.txt"] = workflow_commands.render_several(reports)
    return found


if __name__ == "__main__":
    for name, text in render_snapshots().items():
        (FOLDER / name).write_text(text, "utf-8")
