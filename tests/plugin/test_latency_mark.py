"""``@pytest.mark.ldos_latency``: measured, kept as a baseline, judged."""

from __future__ import annotations


def test_a_marked_test_measures_and_is_gated(project, forked):
    project.makepyfile(
        test_latency="""
        import pytest

        @pytest.mark.ldos_latency(
            sizes="64", transports="one_process", seconds=0.1, rounds=4, ddsperf=False, ros=False
        )
        def test_latency(ldos_study):
            ldos_study.check()
            assert {each.case for each in ldos_study.study.rounds} == {"cyclonedds, one_process, 64 B, reliable"}
            assert all(each.values["round_trip_p50"] > 0 for each in ldos_study.study.rounds)
        """
    )
    first = forked.run(project.path, "test_latency.py")
    first.assert_outcomes(passed=1)
    first.stdout.fnmatch_lines(["*recorded as the first baseline*"])
    reported = [number for number, line in enumerate(first.stdout.lines) if line.startswith("latency: round")]
    assert reported == list(range(reported[0], reported[0] + len(reported))), "a line each, and none between them"
    assert len(reported) > 1


def test_invalid_setting_is_reported(project, forked):
    project.makepyfile(
        test_latency="""
        import pytest

        @pytest.mark.ldos_latency(sizes="9MiB")
        def test_latency(ldos_study):
            ldos_study.check()
        """
    )
    result = forked.run(project.path, "test_latency.py")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*sizes holds '9MiB'*"])
