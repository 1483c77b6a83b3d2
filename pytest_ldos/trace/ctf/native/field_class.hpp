// The types of fields of CTF 1.8 and CTF 2, as the metadata declares them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace ldos::ctf {

enum class ByteOrder : std::uint8_t { little, big };

struct FieldClass;
using FieldPtr = std::shared_ptr<const FieldClass>;

struct IntegerClass {
  std::uint32_t size = 0;       // bits, 1 to 64
  std::uint32_t alignment = 1;  // bits
  bool is_signed = false;
  ByteOrder order = ByteOrder::little;
  bool is_text = false;         // an array of these is a string
  std::string clock;            // clock of the value, or empty
};

struct FloatClass {
  std::uint32_t size = 0;  // bits: 32 or 64
  std::uint32_t alignment = 1;
  ByteOrder order = ByteOrder::little;
};

struct EnumMapping {
  std::string label;
  std::int64_t first = 0;
  std::int64_t last = 0;

  // Bounds of an unsigned enumeration are kept as the same 64 bits.
  [[nodiscard]] bool holds(std::uint64_t value, bool is_signed) const {
    if (is_signed) {
      const auto number = static_cast<std::int64_t>(value);
      return first <= number && number <= last;
    }
    return static_cast<std::uint64_t>(first) <= value && value <= static_cast<std::uint64_t>(last);
  }
};

struct EnumClass {
  IntegerClass container;
  std::vector<EnumMapping> mappings;
};

// An integer of variable length (LEB128, CTF 2), of at most 64 bits.
struct VariableIntegerClass {
  bool is_signed = false;
  std::vector<EnumMapping> mappings;
};

struct StringClass {};

struct ArrayClass {
  FieldPtr element;
  std::uint64_t length = 0;
  std::uint32_t alignment = 1;  // bits, at least
};

struct SequenceClass {
  FieldPtr element;
  std::string length_name;  // raw name of the integer that holds the length
  std::uint32_t alignment = 1;  // bits, at least
};

struct Member {
  std::string raw_name;  // as in the metadata; lengths and tags refer to it
  std::string name;      // without one leading underscore, as readers show it
  FieldPtr type;
};

struct StructClass {
  std::vector<Member> members;
  std::uint32_t alignment = 1;  // bits; at least its own, after `make_field` also its members'
};

struct VariantClass {
  std::string tag_name;
  std::vector<Member> options;
  std::vector<std::vector<EnumMapping>> ranges;  // values of the tag for each option; none: its labels tell
  bool is_optional = false;                      // there may be no option for a tag
};

using FieldShape = std::variant<IntegerClass, FloatClass, EnumClass, VariableIntegerClass, StringClass, ArrayClass,
                                SequenceClass, StructClass, VariantClass>;

// Sizes are computed once, when a field is created: types are shared, and a few lines of
// metadata can describe a tree of more nodes than there is time to visit.
struct FieldClass {
  FieldShape shape;
  std::uint32_t alignment = 1;   // bits
  std::uint64_t least_bits = 0;  // of the smallest value, without padding
  std::uint32_t depth = 1;       // levels of nesting
};

// Deeper types are refused, so that code that visits a type may recurse.
inline constexpr std::uint32_t kDeepestType = 64;

struct TypeTooDeep {};

// Throws TypeTooDeep.
FieldPtr make_field(FieldShape shape);

}  // namespace ldos::ctf
