"""The rule by which outputs on pages are compared with what came."""

from __future__ import annotations

import pytest

from tests.builders.shown_output import differs

CAME = """starting the stack
baseline: trial 1 of 10 success  T1 22.1 ms

baseline: passed; 10 of 10 trials succeeded; not judged here: T3
  T1   21.4 ms  +48.2 %  +25.6 % … +78.5 %  passed
results: .ldos/runs/20261123-160418-0d5de7
""".splitlines()


@pytest.mark.parametrize(
    "shown",
    [
        "\n".join(CAME),
        "…",
        "…\nbaseline: passed; 9 of 9 trials succeeded…\n…",
        "starting the stack\n…\nresults: …",
        "…\n  T1   8.59 ms  -2.0 %   -16.1 % … +21.0 %  passed\n…",
        "…\n  T1  …  passed\nresults: …",
    ],
)
def test_shortened_output_with_other_numbers_matches(shown):
    assert differs(shown.splitlines(), CAME) == ""


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        ("baseline: trial 1 of 10 success  T1 22.1 ms\n…", "baseline: trial 1 of 10 success  T1 22.1 ms"),
        ("…\nbaseline: regressed…\n…", "baseline: regressed…"),
        ("…\n  T2   21.4 ms  …\n…", "  T2   21.4 ms  …"),
        ("…\n  T1   –  …\n…", "  T1   –  …"),
        ("…\nresults: …\nstarting the stack", "results: …\nstarting the stack"),
        ("starting the stack", "starting the stack"),
        ("…\nresults: …\n…\nstarting the stack", "starting the stack"),
    ],
)
def test_changed_reordered_or_unmarked_missing_lines_do_not_match(shown, missing):
    assert differs(shown.splitlines(), CAME) == missing
