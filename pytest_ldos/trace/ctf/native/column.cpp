#include "column.hpp"

#include <cstring>

namespace ldos::ctf {

namespace {

bool is_unsigned(ElementType type) {
  return type == ElementType::u8 || type == ElementType::u16 || type == ElementType::u32 || type == ElementType::u64;
}

template <typename T>
void put(std::uint8_t* base, std::size_t index, T value) {
  std::memcpy(base + index * sizeof(T), &value, sizeof(T));
}

}  // namespace

bool is_floating(ElementType type) { return type == ElementType::f32 || type == ElementType::f64; }

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

void Column::allocate(std::size_t rows_, std::size_t elements) {
  rows = rows_;
  const std::size_t per_row = shape == ColumnShape::list ? width * bytes_of(type) : bytes_of(type);
  values = is_open() ? Buffer(elements, bytes_of(type)) : Buffer(rows, per_row);
  if (is_open()) offsets = Buffer(rows + 1, sizeof(std::int64_t));
  if (may_be_missing && rows != 0) valid = Buffer(rows, 1);
}

void store_integer(std::uint8_t* base, std::size_t index, ElementType type, std::uint64_t value) {
  if (is_floating(type)) {
    return store_floating(base, index, type, static_cast<double>(static_cast<std::int64_t>(value)));
  }
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
