// Cycles of a clock as nanoseconds since its origin.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "metadata.hpp"

namespace ldos::ctf {

// A time that does not fit 64 bits of nanoseconds.
struct TimeOverflow {};

inline constexpr const char* kTimeOverflow = "a time that does not fit 64 bits of nanoseconds";

class ClockToEpoch {
 public:
  ClockToEpoch() = default;

  // Throws TimeOverflow if its offset does not fit.
  explicit ClockToEpoch(const ClockClass& clock);

  // Throws TimeOverflow.
  [[nodiscard]] std::int64_t operator()(std::uint64_t cycles) const {
    const std::uint64_t ns = frequency_ == kNanoseconds ? cycles : ns_of(cycles);
    if (ns > most_ns_) [[unlikely]] overflow();
    return static_cast<std::int64_t>(ns) + offset_ns_;
  }

  // The same, or none if it does not fit.
  [[nodiscard]] std::optional<std::int64_t> moment(std::uint64_t cycles) const;

  [[nodiscard]] std::int64_t offset_ns() const { return offset_ns_; }

 private:
  static constexpr std::uint64_t kNanoseconds = 1'000'000'000;
  static constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max();

  [[noreturn, gnu::noinline, gnu::cold]] static void overflow() { throw TimeOverflow{}; }
  [[nodiscard]] std::uint64_t ns_of(std::uint64_t cycles) const;

  std::uint64_t frequency_ = kNanoseconds;
  std::int64_t offset_ns_ = 0;
  std::uint64_t most_ns_ = static_cast<std::uint64_t>(kLatest) - 1;  // since the clock's zero
};

}  // namespace ldos::ctf
