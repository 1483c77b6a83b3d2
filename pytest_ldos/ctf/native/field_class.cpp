#include "field_class.hpp"

#include <algorithm>

namespace ldos::ctf {

namespace {

struct AlignmentOf {
  std::uint32_t operator()(const IntegerClass& field) const { return field.alignment; }
  std::uint32_t operator()(const FloatClass& field) const { return field.alignment; }
  std::uint32_t operator()(const EnumClass& field) const { return field.container.alignment; }
  std::uint32_t operator()(const StringClass&) const { return 8; }
  std::uint32_t operator()(const ArrayClass& field) const { return alignment_of(*field.element); }
  std::uint32_t operator()(const SequenceClass& field) const { return alignment_of(*field.element); }
  std::uint32_t operator()(const StructClass& field) const {
    std::uint32_t widest = field.alignment;
    for (const Member& member : field.members) widest = std::max(widest, alignment_of(*member.type));
    return widest;
  }
  // A variant itself is not aligned; the chosen option is.
  std::uint32_t operator()(const VariantClass&) const { return 1; }
};

}  // namespace

std::uint32_t alignment_of(const FieldClass& field) { return std::visit(AlignmentOf{}, field.shape); }

}  // namespace ldos::ctf
