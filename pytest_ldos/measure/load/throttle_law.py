"""The law by which a guard finds the publishers' share: additive increase, multiplicative decrease.

It backs off at once and recovers slowly, so that several guards or publishers that do so converge to fair shares.

Reference: D.-M. Chiu and R. Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in
Computer Networks", Computer Networks and ISDN Systems 17 (1989). `ldos_guard` of the ROS workspace has the same law.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ThrottleLimits:
    """See `scenario.loads.GuardSpec`."""

    late_share: float
    least_share: float
    decrease: float
    calm_windows: int
    increase: float


class ThrottleLaw:
    """Judges windows of time, one after another.

    Attributes:
        share: share of their own rate that publishers may use, 0 to 1.
        decreases, increases: numbers of its changes.
    """

    def __init__(self, limits: ThrottleLimits) -> None:
        self._limits = limits
        self._calm_windows = 0
        self.share = 1.0
        self.decreases = 0
        self.increases = 0

    def judge(self, late_share: float | None) -> float:
        """Returns the share after one more window.

        Args:
            late_share: late share of the window's messages; 1 in silence; ``None`` if none came and none is overdue
                yet, which changes nothing.
        """
        if late_share is None:
            return self.share
        if late_share > self._limits.late_share:
            self._calm_windows = 0
            self._move_to(max(self._limits.least_share, self.share * self._limits.decrease))
            return self.share
        self._calm_windows += 1
        if self._calm_windows >= self._limits.calm_windows:
            self._move_to(min(1.0, self.share + self._limits.increase))
        return self.share

    def _move_to(self, share: float) -> None:
        self.decreases += share < self.share
        self.increases += share > self.share
        self.share = share
