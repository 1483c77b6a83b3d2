"""Probabilities, intervals, exact tests of counts and of many quantities, and a fitted curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, betaincinv, betaln, gammaln, logsumexp, stdtr, stdtrit

from pytest_ldos.base.stats.several_tests import Fractions, spend

_Numbers = npt.NDArray[np.float64]
_Flags = npt.NDArray[np.bool_]


def share_interval(successes: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a probability; 0 to 1 without trials.

    Reference: C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26(4), 1934.
    """
    tail = (1 - confidence) / 2
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0
    return low, high


def failure_rise_p(*, head_failures: int, head_trials: int, base_failures: int, base_trials: int) -> float:
    """p-value of a rise of failures: Boschloo's exact test, one-sided, uniformly more powerful than Fisher's.

    Reference: R. D. Boschloo, "Raised conditional level of significance for the 2×2-table", Statistica Neerlandica 24,
    1970.
    """
    if head_failures == 0:
        return 1.0
    from scipy import stats  # noqa: PLC0415 - takes a second to import, and is only needed after failures

    table = [[head_failures, base_failures], [head_trials - head_failures, base_trials - base_failures]]
    return float(stats.boschloo_exact(table, alternative="greater").pvalue)


def shortfall_p(*, successes: int, trials: int, expected_rate: float) -> float:
    """Probability of at most this many successes at the expected rate: exact binomial, one-sided."""
    return float(bdtr(successes, trials, expected_rate))


def mean_shortfall_p(values: Sequence[float], expected: float) -> float:
    """p-value of a mean below the expected one (Student's t, one-sided); 0 for equal values, 1 for a single one."""
    below = expected - float(np.mean(values)) if values else 0.0
    if below <= 0 or len(values) < 2:
        return 1.0
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return 0.0 if error == 0 else float(stdtr(len(values) - 1, -below / error))


_RATES: Final = np.linspace(0.002, 0.998, 250)
"""Grid of common failure rates; the error probability hardly differs between grid points."""

_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Counts:
    head: int
    base: int


def failures_rose(
    *, head_failures: int, base_failures: int, looks: tuple[Counts, ...], fractions: Fractions, alpha: float
) -> bool:
    """True if head fails significantly more often at the last look (one-sided).

    Outcomes are ordered by Fisher's p-value, as in Boschloo's test. The critical value at each look is computed from
    the exact distribution of both counts for every common failure rate, so that all looks together spend no more than
    allowed. Error probability that an early look cannot spend, because few outcomes are possible, remains for later.

    Args:
        looks, fractions: numbers of trials at all looks, the present one last, and their information fractions.
        alpha: largest probability of a rejection at any look under equal failure rates.
    """
    now = looks[-1]
    if head_failures == 0 or now.base == 0:
        return False
    return bool(_fisher_p(now.head, now.base)[head_failures, base_failures] <= _critical_p(looks, fractions, alpha))


@lru_cache(maxsize=64)
def _critical_p(looks: tuple[Counts, ...], fractions: Fractions, alpha: float) -> float:
    """The largest rejected Fisher p-value at the last look; negative if none is rejected."""
    rejected = np.zeros(len(_RATES))
    continuing, before, critical = np.ones((1, 1)), Counts(0, 0), -1.0  # given the counts, which no rate influences
    for look, fraction in zip(looks, fractions, strict=True):
        of_head, of_base = _earlier(before.head, look.head), _earlier(before.base, look.base)
        continuing = of_head @ continuing @ of_base.T
        chances, p_values = continuing * _given_total(look.head, look.base), _fisher_p(look.head, look.base)
        critical = _largest_region(chances, rejected, p_values, spend(alpha, fraction))
        is_rejected = p_values <= critical
        rejected = rejected + _probability(chances, is_rejected)
        continuing, before = np.where(is_rejected, 0.0, continuing), look
    return critical


def _largest_region(chances: _Numbers, rejected: _Numbers, p_values: _Numbers, allowed: float) -> float:
    """The largest p-value that may be rejected, adding outcomes one by one from the most extreme.

    `chances` are probabilities given the total, without an earlier rejection; `rejected` those of one, by rate.
    """
    candidates = np.unique(p_values)
    low, high = -1, len(candidates) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if (rejected + _probability(chances, p_values <= candidates[middle])).max() <= allowed:
            low = middle
        else:
            high = middle - 1
    return float(candidates[low]) * (1 + _ROUNDING) if low >= 0 else -1.0


def _probability(given_total: _Numbers, region: _Flags) -> _Numbers:
    """The probability of the outcomes in a region, by rate, from that of each given its total."""
    totals = np.add.outer(*map(np.arange, region.shape))
    trials, failures = totals[-1, -1], np.arange(totals[-1, -1] + 1)
    weights = np.bincount(totals[region], given_total[region], trials + 1)
    logs = np.outer(np.log(_RATES), failures) + np.outer(np.log1p(-_RATES), trials - failures)
    result: _Numbers = np.exp(_log_choose(trials, failures) + logs) @ weights
    return result


def _earlier(before: int, trials: int) -> _Numbers:
    """The probability of each number of failures at an earlier look (columns), given that of now (rows)."""
    if trials < before:
        raise ValueError(f"a later look has {before - trials} trials less")
    chances = np.zeros((trials + 1, before + 1))
    first = np.arange(before + 1)[:, None]
    chances[first + np.arange(trials - before + 1), first] = _given_total(before, trials - before)
    return chances


def _given_total(head: int, base: int) -> _Numbers:
    """Probability of each outcome given its total, at any common rate: hypergeometric, shape (head + 1, base + 1)."""
    failures = np.add.outer(np.arange(head + 1), np.arange(base + 1))
    logs = _log_choose(head, np.arange(head + 1))[:, None] + _log_choose(base, np.arange(base + 1))
    return np.exp(logs - _log_choose(head + base, failures))


@lru_cache(maxsize=64)
def _fisher_p(head: int, base: int) -> _Numbers:
    """Fisher's one-sided p-value of each outcome, shape (head + 1, base + 1)."""
    probabilities = _given_total(head, base)
    p_values = np.zeros_like(probabilities)
    for row in range(head, -1, -1):  # with equal totals, the next more extreme outcome is one row down, one column left
        p_values[row] = probabilities[row]
        if row < head:
            p_values[row, 1:] += p_values[row + 1, :-1]
    return p_values


def _log_choose(of: int, chosen: npt.NDArray[np.int64]) -> _Numbers:
    return gammaln(of + 1) - gammaln(chosen + 1) - gammaln(of - chosen + 1)


SUPPOSED_CORRELATION: Final = 2 / math.pi * math.asin(0.2)
"""Assumed correlation between the outcomes of two trials of one start, at the threshold: 0.128.

The standard deviation between starts is assumed to be half of that between trials, as in the gate without
calibration: one fifth of the variance. This is the correlation between the signs of two normal variables with
correlation 1/5.
"""

_ALTERNATIVES: Final = 400
_BISECTIONS: Final = 40


@lru_cache(maxsize=64)
def tempering(group: int, boundary: float, correlation: float) -> float:
    """The largest exponent with which likelihood ratios against `boundary` have an expectation of at most 1 per start.

    Holds for every alternative, and for every start of at most `group` trials with a beta-binomial count of this
    correlation or less.

    Source: with ``m`` trials of a start and correlation ``ρ`` between them, a count varies ``1 + (m - 1) ρ`` times
    as much as a binomial one (J. G. Skellam, "A probability distribution derived from the binomial distribution by
    regarding the probability of success as variable", Journal of the Royal Statistical Society B 10, 1948).
    """
    if group == 1 or correlation <= 0:
        return 1.0
    hits = np.arange(group + 1)
    precision = 1 / correlation - 1
    one, other = boundary * precision, (1 - boundary) * precision
    choices = _log_choose(group, hits)
    log_chance = choices + betaln(hits + one, group - hits + other) - betaln(one, other)  # beta-binomial
    alternatives = np.linspace(0, 1, _ALTERNATIVES + 1)[1:-1]
    others = alternatives[np.abs(alternatives - boundary) > 1 / _ALTERNATIVES]
    ratios = np.outer(np.log(others / boundary), hits) + np.outer(np.log1p(-others) - np.log1p(-boundary), group - hits)
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_valid = logsumexp(middle * ratios + log_chance, axis=1).max() <= 0
        low, high = (middle, high) if is_valid else (low, middle)
    return low


def estimate_correlation(levels: Sequence[Sequence[tuple[int, int]]]) -> float | None:
    """The intraclass correlation of hits and trials by level and group; ``None`` if it cannot be estimated.

    Reference: J. L. Fleiss, B. Levin, M. C. Paik, "Statistical Methods for Rates and Proportions", 3rd ed., 15.2.
    """
    between = within = weight = 0.0
    df_between = df_within = 0
    for groups in levels:
        counted = [(hits, trials) for hits, trials in groups if trials]
        total = sum(trials for _, trials in counted)
        if len(counted) < 2:
            continue
        mean = sum(hits for hits, _ in counted) / total
        between += sum(trials * (hits / trials - mean) ** 2 for hits, trials in counted)
        within += sum(hits * (1 - hits / trials) for hits, trials in counted)
        weight += total - sum(trials**2 for _, trials in counted) / total
        df_between += len(counted) - 1
        df_within += total - len(counted)
    if not df_between or not df_within or not within + between:
        return None
    square_between, square_within, size = between / df_between, within / df_within, weight / df_between
    correlation = (square_between - square_within) / (square_between + (size - 1) * square_within)
    return min(1.0, max(0.0, correlation))


_MIDDLES: Final = 801
_SLOPES: Final = 40
_SHALLOWEST: Final = 1.0
_STEEPEST: Final = 400.0
_SMALLEST: Final = 1e-300


@dataclass(frozen=True)
class LogisticCurve:
    """``P(x) = 1 / (1 + exp(-slope (x - middle)))``."""

    middle: float
    slope: float

    def __call__(self, place: float) -> float:
        return 1 / (1 + math.exp(-min(700.0, max(-700.0, self.slope * (place - self.middle)))))

    def place_of(self, probability: float) -> float:
        return self.middle + math.log(probability / (1 - probability)) / self.slope


def fit_logistic(places: Sequence[float], hits: Sequence[int], trials: Sequence[int]) -> LogisticCurve:
    """The increasing curve with the largest penalised likelihood; places are between 0 and 1.

    The penalty is Jeffreys' prior, so that a fit exists even for separated outcomes (0 to 100 % between two levels).

    Reference: D. Firth, "Bias reduction of maximum likelihood estimates", Biometrika 80, 1993.
    """
    x, k, n = (np.asarray(each, dtype=np.float64) for each in (places, hits, trials))
    middles = np.linspace(0, 1, _MIDDLES)[:, None, None]
    slopes = np.geomspace(_SHALLOWEST, _STEEPEST, _SLOPES)[None, :, None]
    logits = slopes * (x - middles)
    log_hit, log_missed = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
    weights = n * np.exp(log_hit + log_missed)
    information = weights.sum(-1) * (weights * x**2).sum(-1) - (weights * x).sum(-1) ** 2
    penalty = np.log(np.maximum(information, _SMALLEST)) / 2
    likelihood = (k * log_hit + (n - k) * log_missed).sum(-1) + penalty
    middle, slope = np.unravel_index(int(np.argmax(likelihood)), likelihood.shape)
    return LogisticCurve(float(middles[middle, 0, 0]), float(slopes[0, slope, 0]))


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % bounds of the mean, by Student's t; infinite for fewer than two values."""
    if len(values) < 2:
        return (-math.inf, math.inf)
    center = float(np.mean(values))
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    half = float(stdtrit(len(values) - 1, (1 + 0.95) / 2)) * error
    return (center - half, center + half)


def median_interval(values: Sequence[float], *, confidence: float = 0.95) -> tuple[float, float]:
    """Bounds of the median of values, some censored; infinite if there are too few for the confidence.

    Reference: H. A. David, H. N. Nagaraja, "Order Statistics", 3rd ed., section 7.1.
    """
    ordered = sorted(values)
    size, tail = len(ordered), (1 - confidence) / 2
    left_out = int(np.count_nonzero(bdtr(np.arange(size), size, 0.5) <= tail))
    return (ordered[left_out - 1], ordered[size - left_out]) if left_out else (-math.inf, math.inf)


_MOST: Final = 5_000
"""Largest number of divisions that are enumerated; of more, this many are drawn at random."""

_LEAST_SPREAD: Final = 0.01
"""Added to the spread of a quantity, so that a few equal values give no large contrast."""

_SAME: Final = 1 - 1e-9


def largest_contrast_p(head: _Numbers, base: _Numbers) -> _Numbers:
    """Probability, for each quantity, of a largest contrast as large as its own if no quantity differs.

    Rows are runs, columns quantities; the values are logarithms, so that spreads are relative.

    Between equal versions, runs are exchangeable: the largest contrasts of all divisions of the runs are the null
    distribution. The family-wise error stays below the level for any dependence of quantities and distribution of runs.

    Reference: P. Westfall, S. Young, "Resampling-Based Multiple Testing", 1993, chapter 2 (single-step maxT).
    """
    size, others = len(head), len(base)
    together = np.vstack([head, base])
    together = together - together.mean(axis=0)
    chosen = _divisions(len(together), size)
    ours = chosen @ together / size
    theirs = (together.sum(axis=0) - chosen @ together) / others
    squares = (together**2).sum(axis=0) - size * ours**2 - others * theirs**2
    spread = np.sqrt(np.maximum(squares, 0.0) / max(len(together) - 2, 1))
    contrasts = np.abs(ours - theirs) / (spread + _LEAST_SPREAD)  # of means over spread, by division and quantity
    largest = np.sort(contrasts.max(axis=1, initial=0.0))
    observed = contrasts[0]
    at_least: _Numbers = (len(chosen) - np.searchsorted(largest, observed * _SAME)) / len(chosen)
    return at_least


def smallest_p(head: int, base: int) -> float:
    """The smallest possible probability with so many runs."""
    return (2 if head == base else 1) / math.comb(head + base, head)


def fewest_runs(alpha: float) -> int:
    """Fewest runs per side for which a difference at this level is possible."""
    runs = 1
    while smallest_p(runs, runs) > alpha:
        runs += 1
    return runs


def _divisions(runs: int, chosen: int) -> _Numbers:
    """Divisions as rows with ones for the runs of one side; the observed division is first."""
    if math.comb(runs, chosen) <= _MOST:
        places = np.array(list(combinations(range(runs), chosen)))
    else:
        generator = np.random.default_rng(runs * 1_000 + chosen)
        some = [generator.permutation(runs)[:chosen] for _ in range(_MOST - 1)]
        places = np.array([np.arange(chosen), *some])
    rows = np.zeros((len(places), runs))
    np.put_along_axis(rows, places, 1.0, axis=1)
    return rows
