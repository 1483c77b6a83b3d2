// A column of decoded values, as it leaves the decoder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "dictionary.hpp"
#include "layout.hpp"

namespace ldos::ctf {

enum class ElementType : std::uint8_t { i8, u8, i16, u16, i32, u32, i64, u64, f32, f64 };

std::size_t bytes_of(ElementType type);

bool is_floating(ElementType type);

// The type that holds the values of both.
ElementType common_type(ElementType a, ElementType b);

ElementType element_type(const Leaf& leaf);

enum class ColumnShape : std::uint8_t { scalar, text, list };

struct Column {
  std::string name;
  ColumnShape shape = ColumnShape::scalar;
  ElementType type = ElementType::i64;
  std::size_t rows = 0;
  std::uint32_t width = 0;     // elements per row of a list of fixed length, else 0
  bool may_be_missing = false; // some layout, or some choice of a variant, has no such field
  Buffer values;               // rows × width elements; codes for text; all elements of an open list
  Buffer offsets;              // of an open list: rows + 1 of i64
  Buffer valid;                // one byte per row; empty if every row has a value
  Dictionary dictionary;
  std::vector<EnumMapping> labels;

  // A list whose rows differ in length.
  [[nodiscard]] bool is_open() const { return shape == ColumnShape::list && width == 0; }

  // `elements` is the number of all elements of an open list.
  void allocate(std::size_t rows_, std::size_t elements);
};

// Stores the low bytes of a (sign-extended) integer as element `index`, or its value in a column of floats.
void store_integer(std::uint8_t* base, std::size_t index, ElementType type, std::uint64_t value);
void store_floating(std::uint8_t* base, std::size_t index, ElementType type, double value);

}  // namespace ldos::ctf
