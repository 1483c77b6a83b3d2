// Fills direct columns: one tight loop for each column of a block of events.
#pragma once

#include <cstdint>

#include "column.hpp"

namespace ldos::ctf {

// Events of one layout: the beginning of each one's contexts, and its row of the table.
struct Block {
  const std::uint8_t* const* events = nullptr;
  const std::uint32_t* rows = nullptr;  // relative to `first_row`; null: one after the other
  std::size_t count = 0;
  std::size_t first_row = 0;
};

// Codes of one text column while it is filled.
struct TextCodes {
  Dictionary dictionary;
  FieldCache cache;
};

void gather(Column& column, const Leaf& leaf, const Block& block, TextCodes& codes);

// A number of any size, position and order, into element `index`.
void store_number(std::uint8_t* base, std::size_t index, ElementType type, const std::uint8_t* event,
                  std::uint64_t bit, const Leaf& leaf);

}  // namespace ldos::ctf
