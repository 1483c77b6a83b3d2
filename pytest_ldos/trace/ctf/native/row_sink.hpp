// Fills walked columns, event by event.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gather.hpp"

namespace ldos::ctf {

// More elements than were counted: the file has been changed meanwhile.
struct TooManyElements {};

// The elements of an open list that belong to one chunk.
struct ElementRange {
  std::size_t next = 0;
  std::size_t end = 0;
};

class RowSink {
 public:
  static constexpr bool kReadsElements = true;

  // `ranges` has one entry per column.
  RowSink(std::vector<Column>& columns, const std::vector<std::size_t>& walked, std::vector<ElementRange>& ranges,
          std::vector<TextCodes>& codes)
      : columns_(columns), walked_(walked), ranges_(ranges), codes_(codes) {}

  void begin(const std::vector<std::int32_t>& column_of, std::size_t row) {
    column_of_ = column_of.data();
    row_ = row;
  }

  void end() {
    for (const std::size_t index : walked_) {
      const Column& column = columns_[index];
      if (!column.is_open()) continue;
      column.offsets.as<std::int64_t>()[row_ + 1] = static_cast<std::int64_t>(ranges_[index].next);
    }
  }

  void integer(std::int32_t leaf, std::uint64_t value) {
    if (Column* column = target(leaf)) store_integer(column->values.data(), row_, column->type, value);
  }

  void floating(std::int32_t leaf, double value) {
    if (Column* column = target(leaf)) store_floating(column->values.data(), row_, column->type, value);
  }

  void text(std::int32_t leaf, std::string_view value) {
    if (Column* column = target(leaf)) {
      column->values.as<std::uint32_t>()[row_] = codes_[index_of(leaf)].dictionary.code(value);
    }
  }

  void list_begin(std::int32_t leaf, std::uint64_t count) {
    list_ = target(leaf);
    if (list_ == nullptr) return;
    element_ = row_ * list_->width;
    if (!list_->is_open()) return;
    ElementRange& range = ranges_[index_of(leaf)];
    if (count > range.end - range.next) throw TooManyElements{};
    element_ = range.next;
    range.next += count;
  }

  void integer_element(std::int32_t, std::uint64_t value) {
    if (list_ != nullptr) store_integer(list_->values.data(), element_++, list_->type, value);
  }

  void floating_element(std::int32_t, double value) {
    if (list_ != nullptr) store_floating(list_->values.data(), element_++, list_->type, value);
  }

 private:
  [[nodiscard]] std::size_t index_of(std::int32_t leaf) const { return static_cast<std::size_t>(column_of_[leaf]); }

  // The column of a leaf, marked to have a value in this row; null if it was not requested.
  Column* target(std::int32_t leaf) {
    if (column_of_[leaf] == kNone) return nullptr;
    Column& column = columns_[index_of(leaf)];
    if (!column.valid.empty()) column.valid.data()[row_] = 1;
    return &column;
  }

  std::vector<Column>& columns_;
  const std::vector<std::size_t>& walked_;
  std::vector<ElementRange>& ranges_;
  std::vector<TextCodes>& codes_;
  const std::int32_t* column_of_ = nullptr;
  std::size_t row_ = 0;
  Column* list_ = nullptr;
  std::size_t element_ = 0;
};

}  // namespace ldos::ctf
