// The fields of one event class, compiled to a flat list of operations.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "field_class.hpp"

namespace ldos::ctf {

inline constexpr std::int32_t kNone = -1;

enum class LeafKind : std::uint8_t { integer, floating, text, integer_list, floating_list };

// One column that an event class contributes.
struct Leaf {
  std::string name;
  LeafKind kind = LeafKind::integer;
  std::uint32_t size = 0;  // bits of an element
  bool is_signed = false;
  bool optional = false;                                // is in a variant
  std::optional<std::uint64_t> fixed_bit;               // bit offset from the event's first context bit
  std::uint32_t count = 0;                              // elements of a fixed list, bytes of a fixed text
  ByteOrder order = ByteOrder::little;
  std::string clock;                                    // clock of the value, or empty
  std::vector<EnumMapping> labels;                      // for enumerations
};

enum class OpKind : std::uint8_t { align, integer, floating, text, text_array, list, choose, repeat, variable };

struct Op {
  OpKind kind = OpKind::align;
  ByteOrder order = ByteOrder::little;
  bool is_signed = false;
  std::uint32_t size = 0;        // bits of an integer, a float or an element; bits of alignment
  std::uint32_t alignment = 1;   // of an element
  std::int32_t leaf = kNone;     // column the value goes to
  std::int32_t slot = kNone;     // slot of an integer (of a list, the last) for later lengths and tags
  std::int32_t length_slot = kNone;  // text_array, list: which slot holds the length (or `count`)
  std::uint64_t count = 0;
  std::uint32_t choice = 0;      // choose: index into `Layout::choices`; repeat: into `Layout::repeats`
  bool floating_elements = false;
  bool in_list = false;          // variable: one more element of a list
};

struct Choice {
  struct Option {
    std::vector<EnumMapping> values;  // of the tag, for which this option is taken
    std::vector<Op> ops;
  };
  std::int32_t slot = kNone;
  bool tag_is_signed = false;
  bool is_optional = false;
  std::vector<Option> options;
};

// Elements that are no numbers: each member is a list of its own, one element after the other.
struct Repeat {
  std::vector<Op> ops;           // of one element
  std::uint64_t least_bits = 1;  // of one element
  std::int32_t first_leaf = 0;
  std::int32_t behind_leaf = 0;
};

// Path of a field, from the outside in.
enum class Scope : std::uint8_t { packet_header, packet_context, event_header, common_context, specific_context, payload };

// A field outside of an event that lengths or tags in it refer to; it is in every packet or header.
struct Outer {
  Scope scope;
  std::size_t leaf;      // of its own record
  std::int32_t slot;
  std::size_t kept = 0;  // of a packet: index into its kept values
};

struct Layout {
  std::vector<Op> ops;
  std::vector<Choice> choices;
  std::vector<Repeat> repeats;
  std::vector<std::string> unread;  // fields that are skipped, because no column could hold them
  std::vector<Leaf> leaves;
  std::vector<Outer> outers;  // by scope and leaf
  std::int32_t slots = 0;
  // Set if every instance has this many bits, starting at a byte boundary.
  std::optional<std::uint64_t> fixed_bits;
  std::uint64_t weight = 0;  // roughly the bytes it takes
};

// Types are shared in metadata but not in layouts: larger layouts are refused.
inline constexpr std::uint64_t kHeaviestLayouts = 32U << 20U;

struct UnsupportedField : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The records around an event.
struct Surroundings {
  const Layout& packet_header;
  const Layout& packet_context;
  const Layout& event_header;
};

// Names of payload leaves that collide with a context field get `payload_` in front.
// Throws UnsupportedField for a shape that has no column.
Layout compile_layout(const Surroundings& around, const FieldPtr& stream_context, const FieldPtr& event_context,
                      const FieldPtr& payload);

// The same for one struct alone (packet header, packet context, event header).
Layout compile_layout(Scope scope, const FieldPtr& record);

}  // namespace ldos::ctf
