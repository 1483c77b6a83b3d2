// Rows of tables of events that belong together: the start and the end of a callback, an event and the one before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ldos::execution {

constexpr std::int32_t kNoRow = -1;

// Columns of a table in time order; threads are not negative.
struct Calls {
  std::size_t rows = 0;
  const std::int32_t* thread = nullptr;
  const std::int64_t* time_ns = nullptr;
  const std::uint64_t* handle = nullptr;
};

// For each start, the rows of its end and of the start that encloses it, or kNoRow; and the starts without an end.
struct Pairs {
  std::vector<std::int32_t> end, parent, open;
};

// Pairs each end with the innermost start of its handle that is open on its thread; starts within it stay open-ended.
// If events may be lost, a start of a handle that is open on its thread proves the loss of an end.
Pairs pair_calls(const Calls& starts, const Calls& ends, bool lossy);

// Ascending numbers of (thread, time), with the thread above `bits`, and the row of each.
struct Order {
  std::size_t rows = 0;
  const std::int64_t* key = nullptr;
  const std::int32_t* row = nullptr;
  int bits = 0;
};

// The keys of such an order, and the row of each.
struct Ordered {
  std::vector<std::int64_t> key;
  std::vector<std::int32_t> row;
};

// Orders events, which are given in time order, by their threads, which are not negative. `since_ns` fits in `bits`.
Ordered order_by_thread(std::span<const std::int32_t> threads, const std::int64_t* since_ns, int bits);

// The row whose place differs by `shift` from the first key above a key, or not below it; kNoRow if it is of another
// thread. Fast for ascending keys.
std::int32_t row_near(const Order& order, std::int64_t key, bool above, std::int64_t shift, std::size_t& place);

// Numbers distinct tuples of integers in the order of their first occurrence.
class Distinct {
 public:
  explicit Distinct(std::size_t width) : width_(width), slots_(kSlots, 0) {}

  // Writes the number of each tuple, which has `width` values; tuples follow each other.
  void number(std::span<const std::int64_t> tuples, std::span<std::int32_t> numbers);

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kSlots = 256;

  [[nodiscard]] std::size_t slot_of(const std::int64_t* tuple) const;
  void grow();

  std::size_t width_;
  std::size_t size_ = 0;
  std::vector<std::int32_t> slots_;  // a number plus 1, or 0; a power of two, at most half full
  std::vector<std::int64_t> known_;
};

}  // namespace ldos::execution
