#include "gather.hpp"

#include <cstring>

#include "bits.hpp"

namespace ldos::ctf {

namespace {

constexpr ByteOrder kHostOrder = std::endian::native == std::endian::little ? ByteOrder::little : ByteOrder::big;

// `store(event, row)` for each event of a block.
template <typename Store>
void for_each_row(const Block& block, const Store& store) {
  if (block.rows == nullptr) {
    for (std::size_t i = 0; i < block.count; ++i) store(block.events[i], block.first_row + i);
  } else {
    for (std::size_t i = 0; i < block.count; ++i) store(block.events[i], block.first_row + block.rows[i]);
  }
}

template <typename T>
void copy_numbers(Column& column, const Leaf& leaf, const Block& block) {
  T* const out = column.values.as<T>();
  const std::uint64_t offset = *leaf.fixed_bit / 8;
  if (leaf.order == kHostOrder) {
    for_each_row(block, [=](const std::uint8_t* event, std::size_t row) { out[row] = load_native<T>(event + offset); });
  } else {
    for_each_row(block, [=](const std::uint8_t* event, std::size_t row) {
      out[row] = swap_bytes(load_native<T>(event + offset));
    });
  }
}

bool is_floating(const Leaf& leaf) { return leaf.kind == LeafKind::floating || leaf.kind == LeafKind::floating_list; }

// Whole bytes that are stored as they are.
bool is_plain(const Column& column, const Leaf& leaf) {
  return *leaf.fixed_bit % 8 == 0 && leaf.size == 8 * bytes_of(column.type) &&
         is_floating(leaf) == is_floating(column.type);
}

void gather_numbers(Column& column, const Leaf& leaf, const Block& block) {
  if (is_plain(column, leaf)) {
    switch (bytes_of(column.type)) {
      case 1: return copy_numbers<std::uint8_t>(column, leaf, block);
      case 2: return copy_numbers<std::uint16_t>(column, leaf, block);
      case 4: return copy_numbers<std::uint32_t>(column, leaf, block);
      default: return copy_numbers<std::uint64_t>(column, leaf, block);
    }
  }
  for_each_row(block, [&](const std::uint8_t* event, std::size_t row) {
    store_number(column.values.data(), row, column.type, event, *leaf.fixed_bit, leaf);
  });
}

void gather_text(Column& column, const Leaf& leaf, const Block& block, TextCodes& codes) {
  auto* const out = column.values.as<std::uint32_t>();
  const std::uint64_t offset = *leaf.fixed_bit / 8;
  const std::size_t size = leaf.count;
  const bool is_cached = FieldCache::suits(size) && codes.cache.prepare(block.count);
  for_each_row(block, [&](const std::uint8_t* event, std::size_t row) {
    const auto* at = reinterpret_cast<const char*>(event + offset);
    out[row] = is_cached ? codes.cache.code(codes.dictionary, at, size) : codes.dictionary.code_of_field(at, size);
  });
}

void gather_lists(Column& column, const Leaf& leaf, const Block& block) {
  const std::size_t width = column.width;
  const bool is_bytes = is_plain(column, leaf) && leaf.size == 8;
  for_each_row(block, [&](const std::uint8_t* event, std::size_t row) {
    if (is_bytes) {
      std::memcpy(column.values.data() + row * width, event + *leaf.fixed_bit / 8, width);
      return;
    }
    for (std::size_t i = 0; i < width; ++i) {
      store_number(column.values.data(), row * width + i, column.type, event, *leaf.fixed_bit + i * leaf.size, leaf);
    }
  });
}

}  // namespace

void store_number(std::uint8_t* base, std::size_t index, ElementType type, const std::uint8_t* event,
                  std::uint64_t bit, const Leaf& leaf) {
  const std::uint64_t value = load_bits(event, bit, leaf.size, leaf.order);
  if (!is_floating(leaf)) {
    store_integer(base, index, type, leaf.is_signed ? sign_extend(value, leaf.size) : value);
  } else if (leaf.size == 32) {
    store_floating(base, index, type, std::bit_cast<float>(static_cast<std::uint32_t>(value)));
  } else {
    store_floating(base, index, type, std::bit_cast<double>(value));
  }
}

void gather(Column& column, const Leaf& leaf, const Block& block, TextCodes& codes) {
  switch (column.shape) {
    case ColumnShape::scalar: gather_numbers(column, leaf, block); break;
    case ColumnShape::text: gather_text(column, leaf, block, codes); break;
    case ColumnShape::list: gather_lists(column, leaf, block); break;
  }
  if (column.valid.empty()) return;
  for_each_row(block, [valid = column.valid.data()](const std::uint8_t*, std::size_t row) { valid[row] = 1; });
}

}  // namespace ldos::ctf
