"""Compares reimplemented rules with the tools themselves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from benchmarks.scorecard.environment import Peers
from benchmarks.scorecard.rules.asv import Asv
from benchmarks.scorecard.rules.otava import PROGRAM
from benchmarks.scorecard.sample import generator

_SAMPLES = 200
_LIMIT_S = 60


def check_asv(peers: Peers, folder: Path) -> str:
    """Result of comparing the reimplementation of asv's rule with asv.

    Raises:
        AssertionError: they differ.
    """
    if peers.python is None:
        return f"not compared with asv itself: {peers.reason}"
    rng = generator("asv")
    base = rng.lognormal(0, 0.15, (_SAMPLES, 30))
    head = rng.lognormal(rng.uniform(0, 0.3, (_SAMPLES, 1)), 0.15, (_SAMPLES, 30))
    base[::2], head[::2] = np.round(base[::2], 2), np.round(head[::2], 2)  # with ties
    base[1::4, 18:], head[1::4, 18:] = np.nan, np.nan  # few enough to be counted
    asked, answered = folder / "asv_samples.npz", folder / "asv_answers.npz"
    np.savez(asked, base=base, head=head)
    command = [str(peers.python), str(PROGRAM), "asv", str(asked), str(answered)]
    subprocess.run(command, check=True, timeout=_LIMIT_S, capture_output=True)
    with np.load(answered) as found:
        theirs = found["red"]
    ours = Asv().fires(base, head, np.zeros(30, dtype=np.int64))
    assert np.array_equal(ours, theirs), f"asv and our statement of it differ in {np.sum(ours != theirs)} of {_SAMPLES}"
    return f"equal to asv itself on {_SAMPLES} pairs of samples, {int(theirs.sum())} of them worsened"
