#include "field_class.hpp"

#include <algorithm>
#include <limits>

namespace ldos::ctf {

namespace {

std::uint64_t add_up(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  if (a != 0 && b > std::numeric_limits<std::uint64_t>::max() / a) return std::numeric_limits<std::uint64_t>::max();
  return a * b;
}

// Sets the properties that follow from a shape; those of its parts are known.
class Measure {
 public:
  explicit Measure(FieldClass& field) : field_(field) {}

  void operator()(const IntegerClass& shape) { set(shape.alignment, shape.size); }
  void operator()(const FloatClass& shape) { set(shape.alignment, shape.size); }
  void operator()(const EnumClass& shape) { set(shape.container.alignment, shape.container.size); }
  void operator()(const VariableIntegerClass&) { set(8, 8); }
  void operator()(const StringClass&) { set(8, 8); }
  void operator()(const ArrayClass& shape) {
    set(std::max(shape.alignment, shape.element->alignment), multiply(shape.element->least_bits, shape.length));
    contain(*shape.element);
  }
  void operator()(const SequenceClass& shape) {
    set(std::max(shape.alignment, shape.element->alignment), 0);
    contain(*shape.element);
  }
  void operator()(StructClass& shape) {
    for (const Member& member : shape.members) {
      shape.alignment = std::max(shape.alignment, member.type->alignment);
      field_.least_bits = add_up(field_.least_bits, member.type->least_bits);
      contain(*member.type);
    }
    field_.alignment = shape.alignment;
  }
  // A variant itself is not aligned; the chosen option is.
  void operator()(const VariantClass& shape) {
    field_.least_bits = shape.options.empty() || shape.is_optional ? 0 : std::numeric_limits<std::uint64_t>::max();
    for (const Member& option : shape.options) {
      field_.least_bits = std::min(field_.least_bits, option.type->least_bits);
      contain(*option.type);
    }
  }

 private:
  void set(std::uint32_t alignment, std::uint64_t least_bits) {
    field_.alignment = alignment;
    field_.least_bits = least_bits;
  }
  void contain(const FieldClass& part) { field_.depth = std::max(field_.depth, part.depth + 1); }

  FieldClass& field_;
};

}  // namespace

FieldPtr make_field(FieldShape shape) {
  auto field = std::make_shared<FieldClass>();
  field->shape = std::move(shape);
  std::visit(Measure(*field), field->shape);
  if (field->depth > kDeepestType) throw TypeTooDeep{};
  return field;
}

}  // namespace ldos::ctf
