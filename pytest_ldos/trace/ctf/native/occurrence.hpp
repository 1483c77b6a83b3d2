// A wanted event between the two ends of the second pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ldos::ctf {

// Its time, its source within its table, and the bit of its file at which the contexts begin.
struct Occurrence {
  static constexpr unsigned kBitBits = 44;
  static constexpr std::uint64_t kSources = 1ULL << (64 - kBitBits);
  static constexpr std::uint64_t kFileBytes = 1ULL << (kBitBits - 3);

  std::int64_t time_ns = 0;
  std::uint64_t packed = 0;

  static constexpr std::uint64_t tag(std::size_t source) { return static_cast<std::uint64_t>(source) << kBitBits; }
  [[nodiscard]] std::size_t source() const { return packed >> kBitBits; }
  [[nodiscard]] std::uint64_t bit() const { return packed & ((1ULL << kBitBits) - 1); }
};

// Merges runs that are each in order of time. Of equal times, those of the run before come first.
class Merger {
 public:
  // Valid until the next call, and as long as the runs.
  std::span<const Occurrence> merge(std::vector<std::span<const Occurrence>>& runs);

 private:
  std::vector<Occurrence> from_;
  std::vector<Occurrence> into_;
};

}  // namespace ldos::ctf
