#include "plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace ldos::ctf {

namespace {

ColumnShape shape_of(const Leaf& leaf) {
  switch (leaf.kind) {
    case LeafKind::text: return ColumnShape::text;
    case LeafKind::integer_list:
    case LeafKind::floating_list: return ColumnShape::list;
    default: return ColumnShape::scalar;
  }
}

const char* suffix(ColumnShape shape) {
  switch (shape) {
    case ColumnShape::text: return "_text";
    case ColumnShape::list: return "_list";
    default: return "_number";
  }
}

// The columns of several layouts together.
class ColumnFinder {
 public:
  // Leaves of one name share a column; if a name is a number in one layout and a text
  // or a list in another, the later one gets a column of its own with its shape in the name.
  std::size_t column_for(const Leaf& leaf) {
    const ColumnShape shape = shape_of(leaf);
    for (const std::string& name : {leaf.name, leaf.name + suffix(shape)}) {
      const auto known = by_name_.find(name);
      if (known == by_name_.end()) return add(leaf, shape, name);
      Column& column = columns_[known->second];
      if (column.shape != shape) continue;
      widen(column, leaf);
      return known->second;
    }
    return add(leaf, shape, leaf.name + suffix(shape) + std::to_string(columns_.size()));
  }

  std::vector<Column> take() { return std::move(columns_); }

 private:
  std::size_t add(const Leaf& leaf, ColumnShape shape, const std::string& name) {
    Column column;
    column.name = name;
    column.shape = shape;
    column.type = shape == ColumnShape::text ? ElementType::u32 : element_type(leaf);
    column.width = shape == ColumnShape::list && !leaf.optional ? leaf.count : 0;
    column.may_be_missing = leaf.optional;
    column.labels = leaf.labels;
    by_name_[name] = columns_.size();
    columns_.push_back(std::move(column));
    return columns_.size() - 1;
  }

  static void widen(Column& column, const Leaf& leaf) {
    column.may_be_missing |= leaf.optional;
    if (column.shape == ColumnShape::text) return;
    column.type = common_type(column.type, element_type(leaf));
    if (column.width != leaf.count || leaf.optional) column.width = 0;
  }

  std::vector<Column> columns_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

// How the leaves of one source map to one column.
enum class Supply : std::uint8_t { none, direct, walked };

class Planner {
 public:
  Planner(const std::vector<Source>& sources, Plan& plan) : sources_(sources), plan_(plan) {}

  void run() {
    for (std::size_t column = 0; column < plan_.columns.size(); ++column) sort(column);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      plan_.group_of.push_back(group_of(i));
      std::vector<std::int32_t>& leaves = plan_.walked_leaf.emplace_back(plan_.any_leaf[i]);
      std::replace_if(leaves.begin(), leaves.end(), [&](std::int32_t column) { return !is_walked(column); }, kNone);
    }
  }

 private:
  using Geometry = std::tuple<bool, LeafKind, std::uint32_t, bool, std::uint64_t, std::uint32_t, ByteOrder>;

  // Decides if a column is direct, and if values may be missing. A list of fixed length
  // would take its space in rows that lack it, too: if there are any, it is an open one.
  void sort(std::size_t number) {
    Column& column = plan_.columns[number];
    bool is_direct = true;
    bool is_everywhere = true;
    for (std::size_t source = 0; source < sources_.size(); ++source) {
      const Supply supply = supply_of(source, static_cast<std::int32_t>(number));
      is_direct &= supply != Supply::walked;
      is_everywhere &= supply != Supply::none;
    }
    if (!is_everywhere) {
      column.may_be_missing = true;
      column.width = 0;
    }
    (is_direct && !column.is_open() ? plan_.direct : plan_.walked).push_back(number);
  }

  [[nodiscard]] Supply supply_of(std::size_t source, std::int32_t column) const {
    const auto& columns = plan_.any_leaf[source];
    const auto leaves = std::count(columns.begin(), columns.end(), column);
    if (leaves == 0) return Supply::none;
    const bool at_fixed_byte = sources_[source].description().starts_at_byte && leaf_of(source, column)->fixed_bit;
    return leaves == 1 && at_fixed_byte ? Supply::direct : Supply::walked;
  }

  [[nodiscard]] const Leaf* leaf_of(std::size_t source, std::int32_t column) const {
    const auto& columns = plan_.any_leaf[source];
    const auto found = std::find(columns.begin(), columns.end(), column);
    if (found == columns.end()) return nullptr;
    return &sources_[source].layout().leaves[static_cast<std::size_t>(found - columns.begin())];
  }

  std::size_t group_of(std::size_t source) {
    Group group;
    std::vector<Geometry> geometry;
    for (const std::size_t column : plan_.direct) {
      const Leaf* leaf = leaf_of(source, static_cast<std::int32_t>(column));
      group.leaves.push_back(leaf);
      geometry.push_back(leaf == nullptr ? Geometry()
                                         : Geometry(true, leaf->kind, leaf->size, leaf->is_signed, *leaf->fixed_bit,
                                                    leaf->count, leaf->order));
    }
    const auto [known, is_new] = known_.try_emplace(std::move(geometry), plan_.groups.size());
    if (is_new) plan_.groups.push_back(std::move(group));
    return known->second;
  }

  [[nodiscard]] bool is_walked(std::int32_t column) const {
    return column != kNone &&
           std::binary_search(plan_.walked.begin(), plan_.walked.end(), static_cast<std::size_t>(column));
  }

  const std::vector<Source>& sources_;
  Plan& plan_;
  std::map<std::vector<Geometry>, std::size_t> known_;
};

}  // namespace

bool Source::has_rows() const {
  return std::any_of(census->segments.begin(), census->segments.end(),
                     [this](const Segment& segment) { return segment.tally.contains(part); });
}

std::uint64_t Source::rows(std::size_t chunk) const {
  const PartTally* counts = tally(chunk);
  return counts != nullptr ? counts->rows : 0;
}

std::uint64_t Source::elements(std::size_t chunk, std::size_t leaf) const {
  const PartTally* counts = tally(chunk);
  if (counts == nullptr) return 0;
  if (description().type->fixed_bytes) return counts->rows * layout().leaves[leaf].count;
  return counts->elements.empty() ? 0 : counts->elements[leaf];
}

const PartTally* Source::tally(std::size_t chunk) const {
  const Segment* segment = census->in_chunk(chunk);
  if (segment == nullptr) return nullptr;
  const auto found = segment->tally.find(part);
  return found != segment->tally.end() ? &found->second : nullptr;
}

std::uint64_t Plan::bytes_per_row() const {
  std::uint64_t bytes = 0;
  for (const Column& column : columns) {
    const std::uint64_t elements = column.shape == ColumnShape::list ? column.width : 1;
    bytes += column.is_open() ? sizeof(std::int64_t) : elements * bytes_of(column.type);
    bytes += column.may_be_missing ? 1 : 0;
  }
  return bytes;
}

Plan make_plan(const std::vector<Source>& sources, const std::set<std::string>& wanted) {
  Plan plan;
  ColumnFinder finder;
  for (const Source& source : sources) {
    std::vector<std::int32_t>& columns = plan.any_leaf.emplace_back();
    for (const Leaf& leaf : source.layout().leaves) {
      const bool is_wanted = wanted.empty() || wanted.contains(leaf.name);
      columns.push_back(is_wanted ? static_cast<std::int32_t>(finder.column_for(leaf)) : kNone);
    }
  }
  plan.columns = finder.take();
  Planner(sources, plan).run();
  return plan;
}

}  // namespace ldos::ctf
