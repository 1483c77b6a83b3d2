#include "clock.hpp"

namespace ldos::ctf {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// Whole seconds and the remaining cycles, which are less than a second.
struct Offset {
  std::int64_t seconds = 0;
  std::uint64_t cycles = 0;
};

Offset normalised(const ClockClass& clock) {
  Offset offset;
  std::uint64_t whole = clock.offset_cycles / clock.frequency;
  offset.cycles = clock.offset_cycles % clock.frequency;
  if (clock.offset_is_negative && offset.cycles != 0) {
    ++whole;
    offset.cycles = clock.frequency - offset.cycles;
  }
  const bool overflows = clock.offset_is_negative
                             ? __builtin_sub_overflow(clock.offset_seconds, whole, &offset.seconds)
                             : __builtin_add_overflow(clock.offset_seconds, whole, &offset.seconds);
  if (overflows) throw TimeOverflow{};
  return offset;
}

}  // namespace

ClockToEpoch::ClockToEpoch(const ClockClass& clock) : frequency_(clock.frequency) {
  const Offset offset = normalised(clock);
  const auto cycles_ns = static_cast<std::int64_t>(frequency_ == kNanoseconds ? offset.cycles : ns_of(offset.cycles));
  if (__builtin_mul_overflow(offset.seconds, kSecond, &offset_ns_) ||
      __builtin_add_overflow(offset_ns_, cycles_ns, &offset_ns_)) {
    throw TimeOverflow{};
  }
  if (offset_ns_ > 0) most_ns_ = static_cast<std::uint64_t>(kLatest - offset_ns_);
}

std::optional<std::int64_t> ClockToEpoch::moment(std::uint64_t cycles) const {
  try {
    return (*this)(cycles);
  } catch (const TimeOverflow&) {
    return std::nullopt;
  }
}

// In floating point, as in babeltrace2: readers of one trace have to agree on its times.
// The error is less than a nanosecond in the first 104 days of a clock.
std::uint64_t ClockToEpoch::ns_of(std::uint64_t cycles) const {
  const double ns = 1e9 * static_cast<double>(cycles) / static_cast<double>(frequency_);
  if (ns >= static_cast<double>(kLatest)) overflow();
  return static_cast<std::uint64_t>(ns);
}

}  // namespace ldos::ctf
