"""Program in the environment of other tools, which calls their code and does not use this project.

python peers_program.py otava SERIES.npz ANSWER.npz
python peers_program.py asv SAMPLES.npz ANSWER.npz
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def ask_otava(asked: Any, answered: str) -> None:
    from otava.analysis import compute_change_points, fill_missing

    first, slack = int(asked["first"]), int(asked["slack"])
    red = []
    for series in asked["series"]:
        values = [value if np.isfinite(value) else None for value in series.tolist()]
        fill_missing(values)  # as Otava itself does with gaps
        points, _ = compute_change_points(values)
        near = [point for point in points if abs(int(point.index) - first) <= slack]
        red.append(any(point.stats.forward_rel_change() > 0 for point in near))
    np.savez(answered, red=np.array(red, dtype=bool))


def ask_asv(asked: Any, answered: str) -> None:
    from asv.commands.compare import _is_result_better
    from asv_runner.statistics import compute_stats

    red = []
    for pair in zip(asked["base"], asked["head"], strict=True):
        base, head = (side[np.isfinite(side)] for side in pair)
        before, after = ((*compute_stats(list(side), 1), list(side)) for side in (base, head))
        red.append(_is_result_better(before[0], after[0], before[1:], after[1:], 1.1))
    np.savez(answered, red=np.array(red, dtype=bool))


if __name__ == "__main__":
    question, source, target = sys.argv[1:]
    {"otava": ask_otava, "asv": ask_asv}[question](np.load(source), target)
