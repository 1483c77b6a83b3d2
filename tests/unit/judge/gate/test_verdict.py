"""Verdicts: each line of the registry is complete."""

from __future__ import annotations

from pytest_ldos.judge.gate.verdict import Tone, Verdict, exit_code


def test_severities_are_one_order():
    ordered = sorted(Verdict, key=lambda each: each.severity)
    assert [each.severity for each in ordered] == [*range(len(Verdict))]
    assert (*ordered[:3], ordered[-1]) == (Verdict.SHOWN, Verdict.NOT_JUDGED, Verdict.PASSED, Verdict.REGRESSED)


def test_tone_and_exit_code_agree():
    for verdict in Verdict:
        assert (verdict.tone is Tone.GOOD) == (exit_code(verdict, strict=True) == 0)
        assert (verdict.tone is Tone.BAD) == (exit_code(verdict, strict=False) != 0)


def test_a_verdict_is_read_from_its_text():
    assert [Verdict(each.value) for each in Verdict] == [*Verdict]
    assert Verdict("not_comparable").word == "not comparable"
