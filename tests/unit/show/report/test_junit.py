"""JUnit properties of a scenario."""

from __future__ import annotations

import pytest
from _pytest.junitxml import bin_xml_escape

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.document import Document, Section
from pytest_ldos.show.report.workflow_commands import junit_properties
from tests.builders.reports import HOSTILE, full_document, in_words


def test_properties_have_all_a_dashboard_needs():
    properties = junit_properties(full_document())
    assert properties["ldos.scenario"] == "msg_load"
    assert properties["ldos.verdict"] == "regressed"
    assert properties["ldos.successes"] == "9/10"
    assert properties["ldos.commit"] == properties["ldos.base"] == "0123456789ab"
    assert properties["ldos.T1.verdict"] == "regressed"
    assert properties["ldos.T1.ratio"] == "1.4"
    assert (properties["ldos.T1.ratio_low"], properties["ldos.T1.ratio_high"]) == ("1.3", "1.5")
    assert properties["ldos.T1.values_ms"] == "14 15 inf 14.8 14.2 13.9"
    assert properties["ldos.grip.median_N"] == "14.2"


def test_unbounded_values():
    properties = junit_properties(full_document())
    assert (properties["ldos.T3.ratio_low"], properties["ldos.T3.ratio_high"]) == ("0", "inf")
    assert properties["ldos.T3.mde"] == "inf"
    assert properties["ldos.T4_p99.ratio_low"] == "inf"


def test_a_second_scenario_has_its_name_in_its_properties():
    properties = junit_properties(full_document())
    assert properties["ldos.cpu_load.verdict"] == "infra"


def test_each_verdict_of_a_scenario_has_its_own_properties():
    sections = tuple(Section(scenario="arm", verdict=verdict) for verdict in Verdict)[:4]
    properties = junit_properties(Document(sections=sections))
    names = ["ldos.verdict", "ldos.arm.verdict", "ldos.arm-3.verdict", "ldos.arm-4.verdict"]
    assert [properties[name] for name in names] == [section.verdict for section in sections]


def test_nothing_measured():
    document = Document(sections=(Section(scenario="baseline", verdict=Verdict.INFRA),))
    assert junit_properties(document) == {"ldos.scenario": "baseline", "ldos.verdict": "infra"}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_escaped_in_xml(text):
    for name, value in junit_properties(in_words(full_document(), text)).items():
        written = f"{bin_xml_escape(name)}{bin_xml_escape(value)}"
        written.encode()
        assert "\x1b" not in written
