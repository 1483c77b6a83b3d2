#include "rows.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace ldos::execution {

namespace {

struct Open {
  std::int32_t row;
  std::uint64_t handle;
};

using Stack = std::vector<Open>;  // the innermost call is the last

Stack::iterator innermost(Stack& stack, std::uint64_t handle) {
  const auto found = std::find_if(stack.rbegin(), stack.rend(), [=](const Open& each) { return each.handle == handle; });
  return found == stack.rend() ? stack.end() : std::prev(found.base());
}

std::size_t thread_count(const Calls& calls) {
  return calls.rows == 0 ? 0 : static_cast<std::size_t>(*std::max_element(calls.thread, calls.thread + calls.rows)) + 1;
}

}  // namespace

Pairs pair_calls(const Calls& starts, const Calls& ends, bool lossy) {
  Pairs found{std::vector(starts.rows, kNoRow), std::vector(starts.rows, kNoRow), {}};
  std::vector<Stack> open(std::max(thread_count(starts), thread_count(ends)));
  std::size_t start = 0;
  std::size_t end = 0;
  while (start < starts.rows || end < ends.rows) {
    const bool is_past = end == ends.rows || (start < starts.rows && starts.time_ns[start] < ends.time_ns[end]);
    if (!is_past) {
      Stack& stack = open[static_cast<std::size_t>(ends.thread[end])];
      const auto ended = innermost(stack, ends.handle[end]);
      const bool is_first = start == starts.rows || ends.time_ns[end] < starts.time_ns[start];
      if (is_first || ended != stack.end()) {  // of equal times, an end of what is open comes first
        if (ended != stack.end()) {
          found.end[static_cast<std::size_t>(ended->row)] = static_cast<std::int32_t>(end);
          stack.erase(ended, stack.end());
        }
        ++end;
        continue;
      }
    }
    Stack& stack = open[static_cast<std::size_t>(starts.thread[start])];
    const std::uint64_t handle = starts.handle[start];
    if (lossy) std::erase_if(stack, [=](const Open& each) { return each.handle == handle; });
    if (!stack.empty()) found.parent[start] = stack.back().row;
    stack.push_back({static_cast<std::int32_t>(start), handle});
    ++start;
  }
  for (const Stack& stack : open) {
    for (const Open& each : stack) found.open.push_back(each.row);
  }
  std::sort(found.open.begin(), found.open.end());
  return found;
}

Ordered order_by_thread(std::span<const std::int32_t> threads, const std::int64_t* since_ns, int bits) {
  std::vector<std::size_t> place;  // of the next event of each thread
  for (const std::int32_t thread : threads) {
    if (const auto after = static_cast<std::size_t>(thread) + 1; after >= place.size()) place.resize(after + 1);
    ++place[static_cast<std::size_t>(thread) + 1];
  }
  std::partial_sum(place.begin(), place.end(), place.begin());
  Ordered found{std::vector<std::int64_t>(threads.size()), std::vector<std::int32_t>(threads.size())};
  for (std::size_t row = 0; row < threads.size(); ++row) {
    const std::size_t at = place[static_cast<std::size_t>(threads[row])]++;
    found.key[at] = (static_cast<std::int64_t>(threads[row]) << bits) | since_ns[row];
    found.row[at] = static_cast<std::int32_t>(row);
  }
  return found;
}

std::int32_t row_near(const Order& order, std::int64_t key, bool above, std::int64_t shift, std::size_t& place) {
  const auto is_passed = [=](std::int64_t other) { return above ? other <= key : other < key; };
  const std::int64_t* const end = order.key + order.rows;
  const std::int64_t* from = order.key + place;
  if (place > 0 && !is_passed(from[-1])) from = order.key;  // keys went back
  std::ptrdiff_t step = 1;
  while (end - from > step && is_passed(from[step - 1])) {
    from += step;
    step *= 2;
  }
  const std::int64_t* const to = end - from > step ? from + step : end;
  place = static_cast<std::size_t>(std::partition_point(from, to, is_passed) - order.key);
  const std::int64_t at = static_cast<std::int64_t>(place) + shift;
  if (at < 0 || at >= static_cast<std::int64_t>(order.rows)) return kNoRow;
  return order.key[at] >> order.bits == key >> order.bits ? order.row[at] : kNoRow;
}

// The slot that has the tuple, or the free one for it.
inline std::size_t Distinct::slot_of(const std::int64_t* tuple) const {
  std::uint64_t hash = 0;
  for (std::size_t at = 0; at < width_; ++at) hash = (hash ^ static_cast<std::uint64_t>(tuple[at])) * 0x9E3779B97F4A7C15U;
  std::size_t slot = (hash >> 32) & (slots_.size() - 1);
  while (slots_[slot] != 0) {
    const std::int64_t* const known = known_.data() + static_cast<std::size_t>(slots_[slot] - 1) * width_;
    std::size_t equal = 0;
    while (equal < width_ && known[equal] == tuple[equal]) ++equal;
    if (equal == width_) break;
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

void Distinct::number(std::span<const std::int64_t> tuples, std::span<std::int32_t> numbers) {
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    const std::int64_t* const tuple = tuples.data() + row * width_;
    std::size_t slot = slot_of(tuple);
    if (slots_[slot] == 0) {
      if (2 * size_ >= slots_.size()) {
        grow();
        slot = slot_of(tuple);
      }
      known_.insert(known_.end(), tuple, tuple + width_);
      slots_[slot] = static_cast<std::int32_t>(++size_);
    }
    numbers[row] = slots_[slot] - 1;
  }
}

void Distinct::grow() {
  slots_.assign(2 * slots_.size(), 0);
  for (std::size_t number = 0; number < size_; ++number) {
    slots_[slot_of(known_.data() + number * width_)] = static_cast<std::int32_t>(number) + 1;
  }
}

}  // namespace ldos::execution
