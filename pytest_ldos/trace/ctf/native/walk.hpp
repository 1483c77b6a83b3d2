// Runs a Layout over bytes: one interpreter for skipping and for reading.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "bits.hpp"
#include "layout.hpp"

namespace ldos::ctf {

// A position in a packet. `base` is the packet's first byte; nothing at or after bit
// `end` is ever read.
struct Cursor {
  const std::uint8_t* base = nullptr;
  std::uint64_t bit = 0;
  std::uint64_t end = 0;

  [[nodiscard]] std::uint64_t left() const { return end - bit; }
};

// The field extends beyond the packet's content.
struct Overrun {};

// The tag of a variant has a value for which no option is declared.
struct UnknownTag {
  std::uint64_t value;
};

// A sink receives the values that a layout describes. Text and numbers are those of leaf `leaf`.
struct Skip {
  void integer(std::int32_t, std::uint64_t) {}
  void floating(std::int32_t, double) {}
  void text(std::int32_t, std::string_view) {}
  void list_begin(std::int32_t, std::uint64_t) {}
  void integer_element(std::int32_t, std::uint64_t) {}
  void floating_element(std::int32_t, double) {}
  static constexpr bool kReadsElements = false;
};

template <typename Sink>
class Walk {
 public:
  Walk(const Layout& layout, Cursor& cursor, std::vector<std::uint64_t>& slots, Sink& sink)
      : layout_(layout), cursor_(cursor), slots_(slots), sink_(sink) {
    if (slots_.size() < static_cast<std::size_t>(layout.slots)) slots_.resize(static_cast<std::size_t>(layout.slots));
  }

  void run() { run(layout_.ops); }

 private:
  void run(const std::vector<Op>& ops) {
    for (const Op& op : ops) step(op);
  }

  void step(const Op& op) {
    switch (op.kind) {
      case OpKind::align: return align(op.size);
      case OpKind::integer: return integer(op);
      case OpKind::floating: return sink_.floating(op.leaf, load_floating(op));
      case OpKind::text: return text(op);
      case OpKind::text_array: return text_array(op);
      case OpKind::list: return list(op);
      case OpKind::choose: return choose(layout_.choices[op.choice]);
      case OpKind::variable: return variable(op);
      case OpKind::repeat: return repeat(op, layout_.repeats[op.choice]);
    }
  }

  // Alignment is relative to the packet, which begins at a page of the trace file.
  void align(std::uint64_t bits) {
    const std::uint64_t aligned = (cursor_.bit + bits - 1) & ~(bits - 1);
    if (aligned > cursor_.end) throw Overrun{};
    cursor_.bit = aligned;
  }

  std::uint64_t load(const Op& op) {
    if (cursor_.left() < op.size) throw Overrun{};
    std::uint64_t value = load_bits(cursor_.base, cursor_.bit, op.size, op.order);
    cursor_.bit += op.size;
    if (op.is_signed) value = sign_extend(value, op.size);
    return value;
  }

  double load_floating(const Op& op) {
    const std::uint64_t bits = load(op);
    if (op.size == 32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    return std::bit_cast<double>(bits);
  }

  void integer(const Op& op) {
    const std::uint64_t value = load(op);
    slots_[static_cast<std::size_t>(op.slot)] = value;
    sink_.integer(op.leaf, value);
  }

  // Seven bits a byte, the least significant first, as long as a byte's highest bit is set.
  void variable(const Op& op) {
    std::uint64_t value = 0;
    std::uint32_t size = 0;
    for (bool goes_on = true; goes_on; size += size < 64 ? 7 : 0) {
      if (cursor_.left() < 8) throw Overrun{};
      const std::uint64_t byte = cursor_.base[cursor_.bit / 8];
      if (size < 64) value |= (byte & 0x7FU) << size;
      goes_on = (byte & 0x80U) != 0;
      cursor_.bit += 8;
    }
    if (op.is_signed && size < 64) value = sign_extend(value, size);
    slots_[static_cast<std::size_t>(op.slot)] = value;
    if (!op.in_list) return sink_.integer(op.leaf, value);
    sink_.list_begin(op.leaf, 1);
    sink_.integer_element(op.leaf, value);
  }

  void text(const Op& op) {
    const auto* at = reinterpret_cast<const char*>(cursor_.base + cursor_.bit / 8);
    const void* stop = std::memchr(at, '\0', cursor_.left() / 8);
    if (stop == nullptr) throw Overrun{};
    const auto length = static_cast<std::size_t>(static_cast<const char*>(stop) - at);
    if (op.leaf != kNone) sink_.text(op.leaf, {at, length});
    cursor_.bit += (length + 1) * 8;
  }

  [[nodiscard]] std::uint64_t count_of(const Op& op) const {
    return op.length_slot == kNone ? op.count : slots_[static_cast<std::size_t>(op.length_slot)];
  }

  void text_array(const Op& op) {
    const std::uint64_t count = count_of(op);
    if (count > cursor_.left() / 8) throw Overrun{};
    const auto* at = reinterpret_cast<const char*>(cursor_.base + cursor_.bit / 8);
    if (op.leaf != kNone) sink_.text(op.leaf, {at, ::strnlen(at, count)});
    cursor_.bit += count * 8;
  }

  void list(const Op& op) {
    const std::uint64_t count = count_of(op);
    if (count > cursor_.left() / op.size) throw Overrun{};
    sink_.list_begin(op.leaf, count);
    const bool packed = op.alignment <= 1 || op.size % op.alignment == 0;
    if (packed && !Sink::kReadsElements && op.slot == kNone) {
      cursor_.bit += count * op.size;
      return;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      align(op.alignment);
      if (op.floating_elements) {
        sink_.floating_element(op.leaf, load_floating(op));
      } else {
        const std::uint64_t value = load(op);
        if (op.slot != kNone) slots_[static_cast<std::size_t>(op.slot)] = value;
        sink_.integer_element(op.leaf, value);
      }
    }
  }

  void repeat(const Op& op, const Repeat& repeat) {
    const std::uint64_t count = count_of(op);
    if (count > cursor_.left() / repeat.least_bits) throw Overrun{};
    for (std::int32_t leaf = repeat.first_leaf; leaf < repeat.behind_leaf; ++leaf) sink_.list_begin(leaf, 0);
    for (std::uint64_t i = 0; i < count; ++i) run(repeat.ops);
  }

  void choose(const Choice& choice) {
    const std::uint64_t tag = slots_[static_cast<std::size_t>(choice.slot)];
    for (const Choice::Option& option : choice.options) {
      for (const EnumMapping& mapping : option.values) {
        if (mapping.holds(tag, choice.tag_is_signed)) return run(option.ops);
      }
    }
    if (!choice.is_optional) throw UnknownTag{tag};
  }

  const Layout& layout_;
  Cursor& cursor_;
  std::vector<std::uint64_t>& slots_;
  Sink& sink_;
};

template <typename Sink>
void walk(const Layout& layout, Cursor& cursor, std::vector<std::uint64_t>& slots, Sink& sink) {
  Walk<Sink>(layout, cursor, slots, sink).run();
}

}  // namespace ldos::ctf
