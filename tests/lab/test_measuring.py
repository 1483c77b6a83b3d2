"""A measurement in the sandbox of a job: what keeps a job from staying must not keep it from measuring."""

from __future__ import annotations

import json

_MEASURE = """
cp /srv/pytest-ldos/tests/scenarios/test_baseline.py .
/opt/ldos-lab/venv/bin/pytest -m baseline --ldos-trials 3 -p no:cacheprovider test_baseline.py
cat .ldos/runs/*/baseline/trials.json >~/trials.json && echo "trials: $(tr -d '\\n' <~/trials.json)"
"""


def test_a_job_measures_traced_reaches(lab, github):
    result = github.result(github.begin(_MEASURE), patience_s=400)
    [line] = [line for line in result.output.splitlines() if line.startswith("trials: ")] or [result.output]
    trials = json.loads(line.removeprefix("trials: "))
    assert trials, result.output
    lab.await_runner_after(result.user)
