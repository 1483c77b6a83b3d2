"""Functions whose share of CPU time grew between profiles of two versions."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.record.perf import fold_perf_script
from pytest_ldos.record.profiles import FoldedStacks, find_grown


def test_lines_of_a_function_are_one_function():
    base = FoldedStacks({("node", "run (a.py:1)", "plan (arm/a.py:7)"): 10, ("node", "spin (a.py:2)"): 990})
    head = FoldedStacks(
        {
            ("node", "run (a.py:1)", "plan (arm/a.py:8)"): 150,
            ("node", "run (a.py:1)", "plan (arm/a.py:9)"): 150,
            ("node", "spin (a.py:2)"): 700,
        }
    )
    (growth,) = find_grown([base, base], [head, head], tools="tool").grown
    assert (growth.function, growth.file, growth.callers) == ("plan", "arm/a.py", ("run",))
    assert (growth.base, growth.head) == (0.01, 0.3)


def test_callees_do_not_make_their_callers_grow():
    base = FoldedStacks({("node", "main"): 500, ("node", "main", "poll"): 500})
    head = FoldedStacks({("node", "main"): 500, ("node", "main", "poll"): 500, ("node", "main", "busy"): 500})
    assert [each.function for each in find_grown([base, base], [head, head], tools="").grown] == ["busy"]


def test_same_function_of_two_processes_is_two_functions():
    base = FoldedStacks({("a", "step"): 500, ("b", "step"): 500})
    head = FoldedStacks({("a", "step"): 500, ("b", "step"): 1500})
    assert [each.process for each in find_grown([base, base], [head, head], tools="").grown] == ["b"]


def test_at_most_three_functions_the_largest_first():
    base = FoldedStacks({("p", "idle"): 4000})
    head = FoldedStacks({("p", "idle"): 3000, **{("p", f"f{number}"): 100 * number for number in range(1, 6)}})
    assert [each.function for each in find_grown([base], [head], tools="").grown] == ["f5", "f4", "f3"]


def test_equal_versions_rarely_grow():
    rng = np.random.default_rng(4)

    def drawn() -> FoldedStacks:
        counts = rng.multinomial(1000, np.array([40, 20, 15, 10, 8, 4, 2, 1]) / 100)
        return FoldedStacks({("p", name): int(count) for name, count in zip("abcdefgh", counts, strict=True) if count})

    grown = sum(bool(find_grown([drawn(), drawn()], [drawn(), drawn()], tools="").grown) for _ in range(200))
    assert grown <= 200 * 0.05 + 3 * np.sqrt(200 * 0.05 * 0.95)


@pytest.mark.parametrize("samples", [100, 10_000])
def test_smallest_growth_depends_on_the_number_of_samples(samples):
    profile = FoldedStacks({("p", "a"): samples, ("p", "b"): samples})
    smallest = find_grown([profile], [profile], tools="").smallest
    assert (smallest < 0.01) == (samples == 10_000)


def test_library_of_a_function_is_known_from_perf():
    def read(count: int) -> FoldedStacks:
        sample = "node 5/5  1.0: cpu-clock:\n\t 10 Planner::solve(int) (/ws/install/my_planner/lib/libsolver.so)\n\n"
        other = "node 5/5  1.0: cpu-clock:\n\t 11 main (/ws/install/my_planner/lib/my_planner/node)\n\n"
        return fold_perf_script((count * sample + 500 * other).splitlines(), {5: "move_group"}).profile

    (growth,) = find_grown([read(1)], [read(400)], tools="").grown
    assert (growth.process, growth.function) == ("move_group", "Planner::solve(int)")
    assert growth.file == "/ws/install/my_planner/lib/libsolver.so"
