"""A diagnosis as text and as JSON."""

from __future__ import annotations

import dataclasses
import json

from pytest_ldos.cli.setup import render_diagnosis, render_diagnosis_json
from pytest_ldos.doctor.changes import error, ok, set_values, warning

FINDINGS = [
    ok("disk", "9.0 GiB free"),
    warning("CPU turbo", "on", "echo 1 > no_turbo", set_values("turn turbo off", {"a": "1"})),
    error("LTTng tools", "not installed", "sudo apt-get install lttng-tools"),
]


def test_each_finding_has_a_row_and_remedies_follow():
    assert render_diagnosis(FINDINGS, width=100, color=False).splitlines() == [
        "  status   check        finding",
        "  ok       disk         9.0 GiB free",
        "  warning  CPU turbo    on",
        "  error    LTTng tools  not installed",
        "",
        "to do",
        "  CPU turbo → echo 1 > no_turbo",
        "  LTTng tools → sudo apt-get install lttng-tools",
        "",
        "1 error, 1 warning",
        "1 can be fixed: ldos doctor --fix",
    ]


def test_good_finding_may_have_a_remedy():
    text = render_diagnosis([dataclasses.replace(FINDINGS[0], remedy="prune")], width=100, color=False)
    assert text.splitlines()[3:5] == ["possible, too", "  disk → prune"]


def test_texts_wrap_and_remedies_do_not():
    remedy = "sudo apt-get install " + "package " * 20
    lines = render_diagnosis([warning("x", "word " * 30, remedy)], width=80, color=False).splitlines()
    assert lines[2].startswith("                  word")
    assert all(len(line) <= 80 for line in lines if "package" not in line)
    assert f"  x → {remedy}".rstrip() in lines


def test_only_the_status_has_its_colour():
    line = render_diagnosis(FINDINGS, width=100, color=True).splitlines()[2]
    assert "warning\x1b[0m" in line
    assert line.endswith("CPU turbo    on")


def test_nothing_is_wrong():
    assert render_diagnosis(FINDINGS[:1], width=100, color=False).endswith("\nnothing is wrong\n")


def test_json_has_the_same_content():
    document = json.loads(render_diagnosis_json(FINDINGS, stack="ros2"))
    assert (document["schema"], document["stack"], document["status"]) == (1, "ros2", "error")
    assert [each["status"] for each in document["findings"]] == ["ok", "warning", "error"]
    assert document["findings"][1]["fix"] == {"description": "turn turbo off", "reversible": True}
    assert document["findings"][2]["fix"] is None


def test_foreign_names_are_escaped_on_the_terminal():
    text = render_diagnosis([warning("x", "a\x1b[31mb [bold]c", "d\x07")], width=100, color=True)
    assert "\\x1b[31mb [bold]c" in text
    assert "\x07" not in text
