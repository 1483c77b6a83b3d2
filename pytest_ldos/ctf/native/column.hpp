// A column of decoded values, as it leaves the decoder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "layout.hpp"

namespace ldos::ctf {

enum class ElementType : std::uint8_t { i8, u8, i16, u16, i32, u32, i64, u64, f32, f64 };

std::size_t bytes_of(ElementType type);

// Where a value is needed, the type that holds both.
ElementType common_type(ElementType a, ElementType b);

ElementType element_type(const Leaf& leaf);

enum class ColumnShape : std::uint8_t { scalar, text, list };

// Strings by number: rows hold codes, each distinct string is stored once. The views
// point into the mapped trace.
class Dictionary {
 public:
  std::uint32_t code(std::string_view text);
  [[nodiscard]] const std::vector<std::string_view>& entries() const { return entries_; }

 private:
  std::unordered_map<std::string_view, std::uint32_t> codes_;
  std::vector<std::string_view> entries_;
  std::string_view last_;
  std::uint32_t last_code_ = 0;
};

struct Column {
  std::string name;
  ColumnShape shape = ColumnShape::scalar;
  ElementType type = ElementType::i64;
  std::size_t rows = 0;
  std::uint32_t width = 0;                // elements a row of a list of fixed length, else 0
  std::unique_ptr<std::uint8_t[]> fixed;  // rows × width elements; for text, u32 codes
  std::vector<std::uint8_t> elements;     // of lists of varying length
  std::vector<std::int64_t> offsets;      // rows + 1, likewise
  Dictionary dictionary;
  std::vector<std::uint8_t> valid;        // one a row; empty where every row has a value
  std::vector<EnumMapping> labels;

  // Allocates what `rows_` rows need, zeroed.
  void allocate(std::size_t rows_);
  void mark_missing(std::size_t row);
};

// Stores the low bytes of a (sign-extended) integer, or a float, as element `index`.
void store_integer(std::uint8_t* base, std::size_t index, ElementType type, std::uint64_t value);
void store_floating(std::uint8_t* base, std::size_t index, ElementType type, double value);

}  // namespace ldos::ctf
