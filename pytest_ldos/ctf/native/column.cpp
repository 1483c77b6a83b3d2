#include "column.hpp"

#include <cstring>

namespace ldos::ctf {

namespace {

bool is_floating(ElementType type) { return type == ElementType::f32 || type == ElementType::f64; }

bool is_unsigned(ElementType type) {
  return type == ElementType::u8 || type == ElementType::u16 || type == ElementType::u32 || type == ElementType::u64;
}

template <typename T>
void put(std::uint8_t* base, std::size_t index, T value) {
  std::memcpy(base + index * sizeof(T), &value, sizeof(T));
}

}  // namespace

std::size_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::i8:
    case ElementType::u8: return 1;
    case ElementType::i16:
    case ElementType::u16: return 2;
    case ElementType::i32:
    case ElementType::u32:
    case ElementType::f32: return 4;
    default: return 8;
  }
}

ElementType common_type(ElementType a, ElementType b) {
  if (a == b) return a;
  if (is_floating(a) || is_floating(b)) return ElementType::f64;
  return is_unsigned(a) && is_unsigned(b) ? ElementType::u64 : ElementType::i64;
}

ElementType element_type(const Leaf& leaf) {
  if (leaf.kind == LeafKind::floating || leaf.kind == LeafKind::floating_list) {
    return leaf.size == 32 ? ElementType::f32 : ElementType::f64;
  }
  if (leaf.size <= 8) return leaf.is_signed ? ElementType::i8 : ElementType::u8;
  if (leaf.size <= 16) return leaf.is_signed ? ElementType::i16 : ElementType::u16;
  if (leaf.size <= 32) return leaf.is_signed ? ElementType::i32 : ElementType::u32;
  return leaf.is_signed ? ElementType::i64 : ElementType::u64;
}

std::uint32_t Dictionary::code(std::string_view text) {
  if (!entries_.empty() && text == last_) return last_code_;
  const auto [found, is_new] = codes_.try_emplace(text, static_cast<std::uint32_t>(entries_.size()));
  if (is_new) entries_.push_back(text);
  last_ = found->first;
  last_code_ = found->second;
  return last_code_;
}

void Column::allocate(std::size_t rows_) {
  rows = rows_;
  if (shape == ColumnShape::list && width == 0) {
    offsets.assign(1, 0);
    offsets.reserve(rows + 1);
    return;
  }
  const std::size_t per_row = shape == ColumnShape::list ? width * bytes_of(type) : bytes_of(type);
  fixed = std::make_unique<std::uint8_t[]>(rows * per_row);
}

void Column::mark_missing(std::size_t row) {
  if (valid.empty()) valid.assign(rows, 1);
  valid[row] = 0;
}

void store_integer(std::uint8_t* base, std::size_t index, ElementType type, std::uint64_t value) {
  switch (bytes_of(type)) {
    case 1: return put(base, index, static_cast<std::uint8_t>(value));
    case 2: return put(base, index, static_cast<std::uint16_t>(value));
    case 4: return put(base, index, static_cast<std::uint32_t>(value));
    default: return put(base, index, value);
  }
}

void store_floating(std::uint8_t* base, std::size_t index, ElementType type, double value) {
  if (type == ElementType::f32) return put(base, index, static_cast<float>(value));
  put(base, index, value);
}

}  // namespace ldos::ctf
