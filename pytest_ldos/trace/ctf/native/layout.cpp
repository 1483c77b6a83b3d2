#include "layout.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace ldos::ctf {

namespace {

// The prefix for a scope in a field's path in the metadata.
constexpr std::array<std::pair<std::string_view, Scope>, 6> kScopes = {{
    {"trace.packet.header.", Scope::packet_header},
    {"stream.packet.context.", Scope::packet_context},
    {"stream.event.header.", Scope::event_header},
    {"stream.event.context.", Scope::common_context},
    {"event.context.", Scope::specific_context},
    {"event.fields.", Scope::payload},
}};

class Compiler {
 public:
  explicit Compiler(const Surroundings* around = nullptr) : around_(around) {}

  Layout finish() {
    find_fixed_offsets();
    for (const auto& [place, slot] : outer_slots_) layout_.outers.push_back({place.first, place.second, slot});
    return std::move(layout_);
  }

  void add_scope(Scope scope, const FieldPtr& record) {
    scope_ = scope;
    if (record) compile(*record, "", "", layout_.ops, false);
  }

  void keep_payload_apart(std::size_t first_payload_leaf) {
    std::unordered_set<std::string> taken;
    for (std::size_t i = 0; i < layout_.leaves.size(); ++i) {
      std::string& name = layout_.leaves[i].name;
      if (i >= first_payload_leaf && taken.contains(name)) name = "payload_" + name;
      taken.insert(name);
    }
  }

  [[nodiscard]] std::size_t leaf_count() const { return layout_.leaves.size(); }

 private:
  // An integer that a later length or tag may refer to.
  struct Known {
    Scope scope;
    std::string name;
    const std::vector<EnumMapping>* labels = nullptr;  // of an enumeration
    bool is_signed = false;
    std::int32_t slot = kNone;
  };

  std::int32_t add_leaf(Leaf leaf, bool optional) {
    leaf.optional = optional;
    for (const EnumMapping& mapping : leaf.labels) weigh(sizeof mapping + mapping.label.size());
    weigh(sizeof leaf + leaf.name.size());
    layout_.leaves.push_back(std::move(leaf));
    return static_cast<std::int32_t>(layout_.leaves.size() - 1);
  }

  void weigh(std::uint64_t bytes) {
    layout_.weight += bytes;
    if (layout_.weight > kHeaviestLayouts) throw UnsupportedField("types that unfold to too many fields");
  }

  static void add_alignment(std::uint32_t bits, std::vector<Op>& ops) {
    if (bits <= 1) return;
    Op op;
    op.kind = OpKind::align;
    op.size = bits;
    ops.push_back(op);
  }

  void compile(const FieldClass& field, const std::string& raw, const std::string& shown, std::vector<Op>& ops,
               bool optional) {
    weigh(sizeof(Op));
    std::visit([&](const auto& shape) { add(shape, raw, shown, ops, optional); }, field.shape);
  }

  void add(const IntegerClass& field, const std::string& raw, const std::string& shown, std::vector<Op>& ops,
           bool optional) {
    add_integer(field, nullptr, raw, shown, ops, optional);
  }

  void add(const EnumClass& field, const std::string& raw, const std::string& shown, std::vector<Op>& ops,
           bool optional) {
    add_integer(field.container, &field, raw, shown, ops, optional);
  }

  void add_integer(const IntegerClass& field, const EnumClass* enumeration, const std::string& raw,
                   const std::string& shown, std::vector<Op>& ops, bool optional) {
    add_alignment(field.alignment, ops);
    Leaf leaf;
    leaf.name = shown;
    leaf.size = field.size;
    leaf.is_signed = field.is_signed;
    leaf.order = field.order;
    leaf.clock = field.clock;
    if (enumeration != nullptr) leaf.labels = enumeration->mappings;
    Op op;
    op.kind = OpKind::integer;
    if (repeating_) {
      leaf.kind = LeafKind::integer_list;
      op.kind = OpKind::list;
      op.alignment = field.alignment;
      op.count = 1;
    }
    op.order = field.order;
    op.is_signed = field.is_signed;
    op.size = field.size;
    op.leaf = add_leaf(std::move(leaf), optional);
    op.slot = layout_.slots++;
    ops.push_back(op);
    known_.push_back({scope_, raw, enumeration != nullptr ? &enumeration->mappings : nullptr, field.is_signed, op.slot});
  }

  void add(const FloatClass& field, const std::string&, const std::string& shown, std::vector<Op>& ops,
           bool optional) {
    add_alignment(field.alignment, ops);
    Leaf leaf;
    leaf.name = shown;
    leaf.kind = LeafKind::floating;
    leaf.size = field.size;
    leaf.order = field.order;
    Op op;
    op.kind = OpKind::floating;
    if (repeating_) {
      leaf.kind = LeafKind::floating_list;
      op.kind = OpKind::list;
      op.floating_elements = true;
      op.alignment = field.alignment;
      op.count = 1;
    }
    op.order = field.order;
    op.size = field.size;
    op.leaf = add_leaf(std::move(leaf), optional);
    ops.push_back(op);
  }

  void add(const VariableIntegerClass& field, const std::string& raw, const std::string& shown, std::vector<Op>& ops,
           bool optional) {
    add_alignment(8, ops);
    Leaf leaf;
    leaf.name = shown;
    leaf.kind = repeating_ ? LeafKind::integer_list : LeafKind::integer;
    leaf.size = 64;
    leaf.is_signed = field.is_signed;
    leaf.labels = field.mappings;
    Op op;
    op.kind = OpKind::variable;
    op.is_signed = field.is_signed;
    op.in_list = repeating_;
    op.leaf = add_leaf(std::move(leaf), optional);
    op.slot = layout_.slots++;
    ops.push_back(op);
    known_.push_back({scope_, raw, nullptr, field.is_signed, op.slot});
  }

  void add(const StringClass&, const std::string&, const std::string& shown, std::vector<Op>& ops, bool optional) {
    add_alignment(8, ops);
    Leaf leaf;
    leaf.name = shown;
    leaf.kind = LeafKind::text;
    Op op;
    op.kind = OpKind::text;
    op.leaf = add_text(std::move(leaf), optional);
    ops.push_back(op);
  }

  // There is no column of lists of text.
  std::int32_t add_text(Leaf leaf, bool optional) {
    if (!repeating_) return add_leaf(std::move(leaf), optional);
    layout_.unread.push_back(leaf.name);
    return kNone;
  }

  void add(const ArrayClass& field, const std::string&, const std::string& shown, std::vector<Op>& ops,
           bool optional) {
    add_alignment(field.alignment, ops);
    add_elements(*field.element, kNone, field.length, shown, ops, optional);
  }

  void add(const SequenceClass& field, const std::string&, const std::string& shown, std::vector<Op>& ops,
           bool optional) {
    const std::optional<Known> length = find_known(field.length_name);
    if (!length) {
      throw UnsupportedField("the length '" + field.length_name + "' of '" + shown + "' is not a field before it");
    }
    const std::int32_t slot = length->slot;
    add_alignment(field.alignment, ops);
    add_elements(*field.element, slot, 0, shown, ops, optional);
  }

  void add_elements(const FieldClass& element, std::int32_t length_slot, std::uint64_t count, const std::string& shown,
                    std::vector<Op>& ops, bool optional) {
    if (is_compound(element)) return add_repeat(element, length_slot, count, shown, ops);
    Op op;
    Leaf leaf;
    leaf.name = shown;
    op.length_slot = length_slot;
    op.count = count;
    leaf.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, std::numeric_limits<std::uint32_t>::max()));
    const auto* integer = std::get_if<IntegerClass>(&element.shape);
    if (const auto* enumeration = std::get_if<EnumClass>(&element.shape)) {
      integer = &enumeration->container;
      leaf.labels = enumeration->mappings;
    }
    if (integer != nullptr) {
      describe_integers(*integer, op, leaf);
    } else {
      const auto* floating = &std::get<FloatClass>(element.shape);
      op.kind = OpKind::list;
      op.floating_elements = true;
      op.order = floating->order;
      op.size = floating->size;
      op.alignment = floating->alignment;
      leaf.kind = LeafKind::floating_list;
    }
    leaf.size = op.size;
    leaf.order = op.order;
    if (repeating_ && op.kind == OpKind::list) leaf.count = 0;
    add_alignment(op.alignment, ops);
    op.leaf = op.kind == OpKind::list ? add_leaf(std::move(leaf), optional) : add_text(std::move(leaf), optional);
    ops.push_back(op);
  }

  static bool is_compound(const FieldClass& element) {
    return !std::holds_alternative<IntegerClass>(element.shape) && !std::holds_alternative<EnumClass>(element.shape) &&
           !std::holds_alternative<FloatClass>(element.shape);
  }

  void add_repeat(const FieldClass& element, std::int32_t length_slot, std::uint64_t count, const std::string& shown,
                  std::vector<Op>& ops) {
    Repeat repeat;
    repeat.least_bits = std::max<std::uint64_t>(element.least_bits, 1);
    repeat.first_leaf = static_cast<std::int32_t>(layout_.leaves.size());
    const std::size_t outside = known_.size();
    const bool was_repeating = std::exchange(repeating_, true);
    compile(element, "", shown, repeat.ops, true);
    repeating_ = was_repeating;
    known_.resize(outside);
    repeat.behind_leaf = static_cast<std::int32_t>(layout_.leaves.size());
    add_alignment(element.alignment, ops);
    Op op;
    op.kind = OpKind::repeat;
    op.length_slot = length_slot;
    op.count = count;
    op.choice = static_cast<std::uint32_t>(layout_.repeats.size());
    layout_.repeats.push_back(std::move(repeat));
    ops.push_back(op);
  }

  static void describe_integers(const IntegerClass& element, Op& op, Leaf& leaf) {
    op.order = element.order;
    op.is_signed = leaf.is_signed = element.is_signed;
    op.size = element.size;
    op.alignment = element.alignment;
    const bool is_text = element.is_text && element.alignment == 8;
    op.kind = is_text ? OpKind::text_array : OpKind::list;
    leaf.kind = is_text ? LeafKind::text : LeafKind::integer_list;
  }

  // Outside of a structure its members are known by their path.
  void add(const StructClass& field, const std::string& raw, const std::string& shown, std::vector<Op>& ops,
           bool optional) {
    add_alignment(field.alignment, ops);
    const std::size_t outside = known_.size();
    for (const Member& member : field.members) {
      compile(*member.type, member.raw_name, path_of(shown, member.name), ops, optional);
    }
    if (shown.empty()) return;
    for (std::size_t i = outside; i < known_.size(); ++i) {
      known_[i].name = raw + "." + known_[i].name;
      weigh(known_[i].name.size());
    }
  }

  void add(const VariantClass& field, const std::string&, const std::string& shown, std::vector<Op>& ops, bool) {
    const std::optional<Known> tag = find_known(field.tag_name);
    if (!tag || (tag->labels == nullptr && field.ranges.empty())) {
      throw UnsupportedField("the tag '" + field.tag_name + "' of '" + shown + "' is not an enumeration before it");
    }
    Choice choice;
    choice.slot = tag->slot;
    choice.tag_is_signed = tag->is_signed;
    std::unordered_multimap<std::string_view, const EnumMapping*> by_label;
    if (field.ranges.empty()) {
      for (const EnumMapping& mapping : *tag->labels) by_label.emplace(mapping.label, &mapping);
    }
    choice.is_optional = field.is_optional;
    const std::size_t outside = known_.size();
    for (std::size_t i = 0; i < field.options.size(); ++i) {
      const Member& member = field.options[i];
      Choice::Option option;
      if (!field.ranges.empty()) option.values = field.ranges[i];
      for (const std::string& name : {member.raw_name, member.name}) {
        const auto [first, last] = by_label.equal_range(name);
        for (auto found = first; found != last; ++found) option.values.push_back(*found->second);
        if (first != last) break;
      }
      weigh(option.values.size() * sizeof(EnumMapping));
      compile(*member.type, member.raw_name, path_of(shown, member.name), option.ops, true);
      known_.resize(outside);
      choice.options.push_back(std::move(option));
    }
    Op op;
    op.kind = OpKind::choose;
    op.choice = static_cast<std::uint32_t>(layout_.choices.size());
    layout_.choices.push_back(std::move(choice));
    ops.push_back(op);
  }

  static std::string path_of(const std::string& outer, const std::string& name) {
    return outer.empty() || name.empty() ? outer + name : outer + "." + name;
  }

  // A reference is a path from the root of a scope, or the name or path of a field before it; of a
  // path that is not known as a whole the last part decides. Fields around the event come last.
  std::optional<Known> find_known(const std::string& reference) {
    for (const auto& [prefix, scope] : kScopes) {
      if (!reference.starts_with(prefix)) continue;
      const std::string path = reference.substr(prefix.size());
      const std::optional<Known> found = find_within(path, scope);
      return found ? found : find_around(path, scope);
    }
    std::optional<Known> found = find_within(reference, std::nullopt);
    for (const Scope scope : {Scope::event_header, Scope::packet_context, Scope::packet_header}) {
      if (!found) found = find_around(reference, scope);
    }
    return found;
  }

  [[nodiscard]] std::optional<Known> find_within(const std::string& path, std::optional<Scope> scope) const {
    const std::optional<Known> found = find_named(path, scope);
    return found ? found : find_named(path.substr(path.rfind('.') + 1), scope);
  }

  [[nodiscard]] std::optional<Known> find_named(const std::string& name, std::optional<Scope> scope) const {
    const auto is_meant = [&](const Known& known) { return known.name == name && (!scope || known.scope == *scope); };
    const auto found = std::find_if(known_.rbegin(), known_.rend(), is_meant);
    return found != known_.rend() ? std::optional(*found) : std::nullopt;
  }

  std::optional<Known> find_around(const std::string& path, Scope scope) {
    const Layout* record = around(scope);
    if (record == nullptr) return std::nullopt;
    const std::string shown = path.size() > 1 && path.front() == '_' ? path.substr(1) : path;
    for (std::size_t i = 0; i < record->leaves.size(); ++i) {
      const Leaf& leaf = record->leaves[i];
      if (leaf.kind != LeafKind::integer || leaf.optional || (leaf.name != path && leaf.name != shown)) continue;
      const auto [found, is_new] = outer_slots_.try_emplace({scope, i}, layout_.slots);
      if (is_new) ++layout_.slots;
      return Known{scope, path, leaf.labels.empty() ? nullptr : &leaf.labels, leaf.is_signed, found->second};
    }
    return std::nullopt;
  }

  [[nodiscard]] const Layout* around(Scope scope) const {
    if (around_ == nullptr) return nullptr;
    switch (scope) {
      case Scope::packet_header: return &around_->packet_header;
      case Scope::packet_context: return &around_->packet_context;
      case Scope::event_header: return &around_->event_header;
      default: return nullptr;
    }
  }

  void find_fixed_offsets() {
    std::uint64_t bit = 0;
    for (const Op& op : layout_.ops) {
      switch (op.kind) {
        case OpKind::align:
          if (op.size > 8) return;
          bit = (bit + op.size - 1) / op.size * op.size;
          break;
        case OpKind::integer:
        case OpKind::floating:
          layout_.leaves[static_cast<std::size_t>(op.leaf)].fixed_bit = bit;
          bit += op.size;
          break;
        case OpKind::text_array:
        case OpKind::list: {
          const bool packed = op.alignment <= 1 || op.size % op.alignment == 0;
          if (op.length_slot != kNone || !packed || op.count > kLargestFixedCount) return;
          layout_.leaves[static_cast<std::size_t>(op.leaf)].fixed_bit = bit;
          bit += op.count * op.size;
          break;
        }
        case OpKind::text:
        case OpKind::choose:
        case OpKind::repeat:
        case OpKind::variable:
          return;
      }
    }
    layout_.fixed_bits = bit;
  }

  static constexpr std::uint64_t kLargestFixedCount = 1 << 20;

  Layout layout_;
  const Surroundings* around_;
  Scope scope_ = Scope::payload;
  std::vector<Known> known_;
  std::map<std::pair<Scope, std::size_t>, std::int32_t> outer_slots_;
  bool repeating_ = false;  // inside the elements of an array
};

}  // namespace

Layout compile_layout(const Surroundings& around, const FieldPtr& stream_context, const FieldPtr& event_context,
                      const FieldPtr& payload) {
  Compiler compiler(&around);
  compiler.add_scope(Scope::common_context, stream_context);
  compiler.add_scope(Scope::specific_context, event_context);
  const std::size_t first_payload_leaf = compiler.leaf_count();
  compiler.add_scope(Scope::payload, payload);
  compiler.keep_payload_apart(first_payload_leaf);
  return compiler.finish();
}

Layout compile_layout(Scope scope, const FieldPtr& record) {
  Compiler compiler;
  compiler.add_scope(scope, record);
  return compiler.finish();
}

}  // namespace ldos::ctf
