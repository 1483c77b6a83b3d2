"""Detection of injected faults, and the gate's promises."""

from __future__ import annotations

import math

import pytest

from pytest_ldos.campaign.calibrate import Share
from pytest_ldos.campaign.detection import (
    SUCCESS,
    Detection,
    Detector,
    Keeping,
    Promised,
    is_trustworthy,
    looks_at,
    with_failures,
)
from pytest_ldos.campaign.noise import plant
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.reasons import describe_reason
from tests.builders.trials import noisy_set

DETECTOR = Detector(base=noisy_set(1, n=20), policy=Policy(), describe=describe_reason, draws=20)
EQUAL = noisy_set(2, n=10)


def detect(head, *, size=0.5, promised=None, path=""):
    return DETECTOR.detect("planning_delay", size, head, path=path, promised=promised)


NEVER = Share(0, 60)


def detection(*, size=0.3, verdict=Verdict.PASSED, share=NEVER, promised=None, problem=""):
    return Detection(
        fault="planning_delay",
        size=size,
        verdict=verdict,
        spent=10,
        seen_by=(),
        blamed="",
        share=share,
        promised=promised,
        problem=problem,
    )


DUE = Promised("T1", 0.31, 0.2)
HARDLY_DUE = Promised("T1", 0.29, 0.2)


@pytest.mark.parametrize(
    ("found", "keeping"),
    [
        (detection(size=0), Keeping.KEPT),
        (detection(size=0, verdict=Verdict.INCONCLUSIVE), Keeping.KEPT),
        (detection(size=0, verdict=Verdict.REGRESSED), Keeping.FALSE_ALARM),
        (detection(verdict=Verdict.REGRESSED, promised=DUE), Keeping.KEPT),
        (detection(promised=DUE), Keeping.BROKEN),
        (detection(promised=DUE, share=Share(47, 60)), Keeping.BY_CHANCE),
        (detection(promised=HARDLY_DUE), Keeping.BY_CHANCE),
        (detection(verdict=Verdict.REGRESSED, promised=HARDLY_DUE), Keeping.KEPT),
        (detection(promised=Promised("T1", 0.1, 0.2)), Keeping.NONE),
        (detection(promised=Promised("T1", 0.1, math.inf)), Keeping.NONE),
        (detection(), Keeping.NONE),
        (detection(promised=DUE, problem="the stack did not start"), Keeping.NONE),
    ],
)
def test_promises_of_the_gate(found, keeping):
    assert found.keeping is keeping
    assert is_trustworthy([found]) is (keeping not in {Keeping.BROKEN, Keeping.FALSE_ALARM})


def test_a_large_fault_is_found_early_and_by_its_metric():
    found = detect(plant(EQUAL, "T1", 3.0))
    assert (found.verdict, found.seen_by, found.spent) == (Verdict.REGRESSED, ("T1",), 5)
    assert found.share == Share(20, 20)


def test_an_equal_version_is_not_found():
    found = detect(EQUAL, size=0.0)
    assert not found.is_found
    assert (found.seen_by, found.spent, found.share.count) == ((), 10, 0)


def test_failures_are_detected():
    found = detect(with_failures(EQUAL, [True] * 7 + [False] * 3))
    assert (found.verdict, found.seen_by[0]) == (Verdict.REGRESSED, SUCCESS)


def test_smallest_detected_failure_rate():
    strict = DETECTOR.smallest_failure_rate(EQUAL)
    assert 0.1 <= strict <= 0.3  # with an expectation of 100 %, one failure is sufficient
    assert DETECTOR.mde(EQUAL, "T1") < DETECTOR.mde(noisy_set(2, n=4), "T1")
    assert DETECTOR.mde(EQUAL, "T9") == math.inf


def test_looks():
    assert looks_at(10) == [5, 10]
    assert looks_at(30) == [5, 30]
    assert looks_at(5) == [5]
