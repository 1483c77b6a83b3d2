"""Loads in tests: effects of a dead load or a wrong setting."""

from __future__ import annotations

from tests.builders.needs import needs_stress_ng


@needs_stress_ng
def test_a_stressor_that_dies_makes_the_run_invalid(run, project):
    project.makepyfile(
        test_scenario="""
        import contextlib
        import psutil
        import pytest
        from pytest_ldos.measure.load.protocol import RepeatedLoad

        @pytest.fixture
        def death(monkeypatch):
            applied_to = RepeatedLoad.applied_to

            @contextlib.contextmanager
            def dying(load, site):
                with applied_to(load, site) as running:
                    for process in psutil.Process().children(recursive=True):
                        if process.name().startswith("stress-ng"):
                            process.kill()
                    yield running

            monkeypatch.setattr(RepeatedLoad, "applied_to", dying)

        @pytest.mark.cpu_load
        def test_reach(panda_stack, cpu_load, ldos_trials, ldos_gate, death):
            with cpu_load(workers=1, percent=10):
                trials = ldos_trials(panda_stack)
            ldos_gate.check(trials)
        """
    )
    result = run("--ldos-warmup=0")
    assert result.ret == 11
    result.stdout.fnmatch_lines(["*invalid*", "*stress-ng-cpu_load was killed by SIGKILL while it was measured*"])
