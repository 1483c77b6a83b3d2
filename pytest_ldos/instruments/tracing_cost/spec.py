"""Settings of `ldos tracing-cost`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.errors import ConfigurationError, require
from pytest_ldos.instruments.cost_layers import LayersSpec
from pytest_ldos.instruments.study import setting

SEED_SIZES_KIB: Final = (1, 32, 64, 256)
SEED_RATES_HZ: Final = (100, 500, 1000, 2000)  # sizes and rates of Table 4.3 in the seed's evaluation
_LARGEST_KIB: Final = 1024
_HIGHEST_HZ: Final = 10_000
_LONGEST_ROUND_S: Final = 3600.0


@dataclass(frozen=True)
class SizeAndRate:
    size_kib: int
    rate_hz: int

    @property
    def label(self) -> str:
        return f"{self.size_kib} KiB, {self.rate_hz} Hz"


@dataclass(frozen=True, kw_only=True)
class TracingCostSpec(LayersSpec):
    """The messages, and the numbers of starts with and without tracing."""

    sizes_kib: str = setting("1,64", "Sizes of messages in KiB, with commas between them.", "--sizes")
    rates_hz: str = setting("100,1000", "Rates in Hz, with commas between them; each size is sent at each.", "--rates")
    full: bool = setting(False, "1, 32, 64, 256 KiB at 100, 500, 1000, 2000 Hz, whatever else is given.", "--full")
    seconds: float = setting(0.5, "Seconds of each size and rate in a start.")
    starts: int = setting(5, "Starts of processes without tracing, and as many with, interleaved.")
    ebpf: bool = setting(True, "Record the same calls with eBPF (bpftrace), too, where that is permitted.")
    calls: int = setting(5000, "Calls of a tracepoint in a loop that times them.")

    def __post_init__(self) -> None:
        super().__post_init__()
        cases = self.cases
        longest = f"more than 0 and at most {_LONGEST_ROUND_S:.0f} s"
        require(0 < self.seconds <= _LONGEST_ROUND_S, f"{self.seconds:g} s of each size and rate", remedy=longest)
        slowest = min(cases, key=lambda case: case.rate_hz)
        too_few = f"{self.seconds:g} s at {slowest.rate_hz} Hz is not even two messages"
        require(self.ticks(slowest) >= 2, too_few, remedy="longer rounds, or a higher rate")
        require(1 <= self.starts <= 1000, f"{self.starts} starts", remedy="between 1 and 1000")
        require(100 <= self.calls <= 100_000, f"{self.calls} calls of a tracepoint", remedy="between 100 and 100 000")

    @property
    def cases(self) -> Sequence[SizeAndRate]:
        sizes = SEED_SIZES_KIB if self.full else _numbers(self.sizes_kib, "sizes_kib", _LARGEST_KIB)
        rates = SEED_RATES_HZ if self.full else _numbers(self.rates_hz, "rates_hz", _HIGHEST_HZ)
        return [SizeAndRate(size, rate) for size in sizes for rate in rates]

    def ticks(self, case: SizeAndRate) -> int:
        return int(self.seconds * case.rate_hz)


def _numbers(text: str, name: str, most: int) -> Sequence[int]:
    """Splits a comma-separated list of integers, without duplicates; raises `ConfigurationError` for other values."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 and 1 <= int(part) <= most for part in parts):
        remedy = f"whole numbers between 1 and {most} with commas between them, as 1,64"
        raise ConfigurationError(f"{name} is {text!r}", remedy=remedy)
    return list(dict.fromkeys(int(part) for part in parts))
