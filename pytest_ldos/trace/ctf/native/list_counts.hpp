// Numbers of elements of the lists of one event.
#pragma once

#include <cstdint>
#include <vector>

#include "walk.hpp"

namespace ldos::ctf {

// A sink that counts. The lists of an array of structures begin once for each of its elements.
class ListCounts : public Skip {
 public:
  // Resets the counts for an event with a number of leaves.
  void reset(std::size_t leaves) {
    for (const std::size_t leaf : counted_) count_of_[leaf] = 0;
    counted_.clear();
    if (count_of_.size() < leaves) count_of_.resize(leaves);
  }

  void list_begin(std::int32_t number, std::uint64_t count) {
    if (count == 0) return;
    const auto leaf = static_cast<std::size_t>(number);
    if (count_of_[leaf] == 0) counted_.push_back(leaf);
    count_of_[leaf] += count;
  }

  [[nodiscard]] bool empty() const { return counted_.empty(); }

  // `elements` has one entry per leaf.
  void add_to(std::vector<std::uint64_t>& elements) const {
    for (const std::size_t leaf : counted_) elements[leaf] += count_of_[leaf];
  }

 private:
  std::vector<std::uint64_t> count_of_;  // by leaf
  std::vector<std::size_t> counted_;     // leaves with elements
};

}  // namespace ldos::ctf
