"""A diagnosis as text and as JSON."""

from __future__ import annotations

import json

from pytest_ldos.doctor.finding import error, ok, warning
from pytest_ldos.doctor.settings import SetValues
from pytest_ldos.show.report.diagnosis import render_diagnosis, render_diagnosis_json

FINDINGS = [
    ok("disk", "9.0 GiB free"),
    warning("CPU turbo", "on", "echo 1 > no_turbo", SetValues("turn turbo off", {"a": "1"})),
    error("LTTng tools", "not installed", "sudo apt-get install lttng-tools"),
]


def test_a_line_a_finding_and_its_remedy_below():
    assert render_diagnosis(FINDINGS, width=100, color=False).splitlines() == [
        "ok       disk         9.0 GiB free",
        "warning  CPU turbo    on",
        "                      → echo 1 > no_turbo",
        "error    LTTng tools  not installed",
        "                      → sudo apt-get install lttng-tools",
        "",
        "1 error, 1 warning; 1 can be mended from here: ldos doctor --fix",
    ]


def test_texts_are_broken_and_remedies_are_not():
    text = render_diagnosis(
        [warning("x", "word " * 30, "sudo apt-get install " + "package " * 20)], width=80, color=False
    )
    lines = text.splitlines()
    assert lines[1].startswith("            word")
    assert all(len(line) <= 80 for line in lines if "package" not in line)
    assert lines[3] == ("            → sudo apt-get install " + "package " * 20).rstrip()


def test_only_the_status_has_its_colour():
    line = render_diagnosis(FINDINGS, width=100, color=True).splitlines()[1]
    assert line.endswith("\x1b[0mCPU turbo    on")


def test_nothing_is_wrong():
    assert render_diagnosis(FINDINGS[:1], width=100, color=False).endswith("\nnothing is wrong\n")


def test_json_says_the_same():
    document = json.loads(render_diagnosis_json(FINDINGS, stack="ros2"))
    assert (document["schema"], document["stack"], document["status"]) == (1, "ros2", "error")
    assert [each["status"] for each in document["findings"]] == ["ok", "warning", "error"]
    assert document["findings"][1]["fix"] == {"description": "turn turbo off", "reversible": True}
    assert document["findings"][2]["fix"] is None


def test_names_that_others_chose_reach_no_terminal_as_they_are():
    text = render_diagnosis([warning("x", "a\x1b[31mb [bold]c", "d\x07")], width=100, color=True)
    assert "\\x1b[31mb [bold]c" in text
    assert "\x07" not in text
