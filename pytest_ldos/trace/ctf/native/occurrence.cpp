#include "occurrence.hpp"

#include <algorithm>

namespace ldos::ctf {

namespace {

// The earlier run is unpredictable if two CPUs write at once, so that the choice is made
// without a branch.
Occurrence* merge_two(std::span<const Occurrence> first, std::span<const Occurrence> second, Occurrence* out) {
  const Occurrence* a = first.data();
  const Occurrence* b = second.data();
  const Occurrence* const a_end = a + first.size();
  const Occurrence* const b_end = b + second.size();
  while (a != a_end && b != b_end) {
    const bool takes_b = b->time_ns < a->time_ns;
    *out++ = takes_b ? *b : *a;
    b += takes_b;
    a += !takes_b;
  }
  return std::copy(b, b_end, std::copy(a, a_end, out));
}

}  // namespace

std::span<const Occurrence> Merger::merge(std::vector<std::span<const Occurrence>>& runs) {
  if (runs.empty()) return {};
  std::size_t size = 0;
  for (const auto& run : runs) size += run.size();
  while (runs.size() > 1) {
    if (into_.size() < size) into_.resize(size);
    Occurrence* out = into_.data();
    for (std::size_t i = 0; i < runs.size(); i += 2) {
      Occurrence* const begin = out;
      const auto second = i + 1 < runs.size() ? runs[i + 1] : std::span<const Occurrence>();
      out = merge_two(runs[i], second, begin);
      runs[i / 2] = {begin, out};
    }
    runs.resize((runs.size() + 1) / 2);
    from_.swap(into_);
  }
  return runs[0];
}

}  // namespace ldos::ctf
