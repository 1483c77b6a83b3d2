#include "table.hpp"

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <unordered_map>

#include "unreadable.hpp"
#include "walk.hpp"

namespace ldos::ctf {

namespace {

// An event of the merged table: which source it lies in, and at which bit of its file.
struct Place {
  static constexpr unsigned kShift = 48;
  std::uint64_t packed = 0;

  Place(std::size_t source, std::uint64_t bit) : packed(static_cast<std::uint64_t>(source) << kShift | bit) {}
  [[nodiscard]] std::size_t source() const { return packed >> kShift; }
  [[nodiscard]] std::uint64_t bit() const { return packed & ((1ULL << kShift) - 1); }
};

// Sources are merged in runs: the earliest source goes on until another one is earlier.
std::vector<Place> merge(const std::vector<Source>& sources, std::int64_t* timestamps, std::size_t rows) {
  struct Head {
    std::int64_t time_ns;
    std::size_t source;
    bool operator>(const Head& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : source > other.source;
    }
  };
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  std::vector<std::size_t> next(sources.size(), 0);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].events.empty()) heads.push({sources[i].events.front().time_ns, i});
  }
  std::vector<Place> places;
  places.reserve(rows);
  while (!heads.empty()) {
    const std::size_t source = heads.top().source;
    heads.pop();
    const auto& events = sources[source].events;
    std::size_t& at = next[source];
    do {
      timestamps[places.size()] = events[at].time_ns;
      places.emplace_back(source, events[at].bit);
      ++at;
    } while (at < events.size() && (heads.empty() || events[at].time_ns < heads.top().time_ns));
    if (at < events.size()) heads.push({events[at].time_ns, source});
  }
  return places;
}

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

// The columns of several layouts together, and for each source the column of each leaf.
class Plan {
 public:
  Plan(const std::vector<Source>& sources, const std::set<std::string>& wanted) : column_of_(sources.size()) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      for (const Leaf& leaf : sources[i].type->layout.leaves) {
        const bool is_wanted = wanted.empty() || wanted.contains(leaf.name);
        column_of_[i].push_back(is_wanted ? static_cast<std::int32_t>(column_for(leaf)) : kNone);
      }
    }
    give_up_widths();
  }

  [[nodiscard]] const std::vector<std::vector<std::int32_t>>& column_of() const { return column_of_; }
  std::vector<Column>& columns() { return columns_; }

  // What every row takes, whatever it holds.
  [[nodiscard]] std::uint64_t bytes_per_row() const {
    std::uint64_t bytes = 0;
    for (const Column& column : columns_) {
      const bool is_open = column.shape == ColumnShape::list && column.width == 0;
      bytes += is_open ? sizeof(std::int64_t) : std::max<std::uint64_t>(column.width, 1) * bytes_of(column.type);
    }
    return bytes;
  }

 private:
  // A list of fixed length takes its space in rows of other layouts too: these have it as an open list.
  void give_up_widths() {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto has_it = [&](const std::vector<std::int32_t>& leaves) {
        return std::find(leaves.begin(), leaves.end(), static_cast<std::int32_t>(i)) != leaves.end();
      };
      if (!std::all_of(column_of_.begin(), column_of_.end(), has_it)) columns_[i].width = 0;
    }
  }

  // Leaves of one name share a column; where a name is a number in one layout and a text
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

  std::size_t add(const Leaf& leaf, ColumnShape shape, const std::string& name) {
    Column column;
    column.name = name;
    column.shape = shape;
    column.type = shape == ColumnShape::text ? ElementType::u32 : element_type(leaf);
    column.width = shape == ColumnShape::list && !leaf.optional ? leaf.count : 0;
    column.labels = leaf.labels;
    by_name_[name] = columns_.size();
    columns_.push_back(std::move(column));
    return columns_.size() - 1;
  }

  static void widen(Column& column, const Leaf& leaf) {
    if (column.shape == ColumnShape::text) return;
    column.type = common_type(column.type, element_type(leaf));
    if (column.width != leaf.count || leaf.optional) column.width = 0;
  }

  std::vector<std::vector<std::int32_t>> column_of_;
  std::vector<Column> columns_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

// Puts the fields of one event after the other into the columns of its row.
class RowSink {
 public:
  static constexpr bool kReadsElements = true;

  explicit RowSink(std::vector<Column>& columns) : columns_(columns), filled_(columns.size(), 0) {}

  void begin(const std::vector<std::int32_t>& column_of, std::size_t row) {
    column_of_ = &column_of;
    row_ = row;
  }

  // Rows without a value, because the event's layout or a variant has no such field.
  void end() {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      Column& column = columns_[i];
      if (filled_[i] != row_ + 1) column.mark_missing(row_);
      if (is_open(column)) column.offsets.push_back(count(column));
    }
  }

  void integer(std::int32_t leaf, std::uint64_t value) {
    if (Column* column = target(leaf)) store(*column, column->fixed.get(), row_, value);
  }

  void floating(std::int32_t leaf, double value) {
    if (Column* column = target(leaf)) store_floating(column->fixed.get(), row_, column->type, value);
  }

  void text(std::int32_t leaf, std::string_view value) {
    if (Column* column = target(leaf)) {
      store_integer(column->fixed.get(), row_, ElementType::u32, column->dictionary.code(value));
    }
  }

  void list_begin(std::int32_t leaf, std::uint64_t) {
    list_ = target(leaf);
    element_ = list_ != nullptr && !is_open(*list_) ? row_ * list_->width : 0;
  }

  void integer_element(std::int32_t, std::uint64_t value) {
    if (list_ != nullptr) store(*list_, next_element(), 0, value);
  }

  void floating_element(std::int32_t, double value) {
    if (list_ != nullptr) store_floating(next_element(), 0, list_->type, value);
  }

 private:
  static bool is_open(const Column& column) { return column.shape == ColumnShape::list && column.width == 0; }

  static std::int64_t count(const Column& column) {
    return static_cast<std::int64_t>(column.elements.size() / bytes_of(column.type));
  }

  static void store(Column& column, std::uint8_t* base, std::size_t index, std::uint64_t value) {
    if (column.type == ElementType::f32 || column.type == ElementType::f64) {
      store_floating(base, index, column.type, static_cast<double>(static_cast<std::int64_t>(value)));
    } else {
      store_integer(base, index, column.type, value);
    }
  }

  Column* target(std::int32_t leaf) {
    const std::int32_t index = (*column_of_)[static_cast<std::size_t>(leaf)];
    if (index == kNone) return nullptr;
    filled_[static_cast<std::size_t>(index)] = row_ + 1;
    return &columns_[static_cast<std::size_t>(index)];
  }

  std::uint8_t* next_element() {
    const std::size_t size = bytes_of(list_->type);
    if (!is_open(*list_)) return list_->fixed.get() + element_++ * size;
    list_->elements.resize(list_->elements.size() + size);
    return list_->elements.data() + list_->elements.size() - size;
  }

  std::vector<Column>& columns_;
  std::vector<std::size_t> filled_;  // row + 1 that a column was last filled for
  const std::vector<std::int32_t>* column_of_ = nullptr;
  std::size_t row_ = 0;
  Column* list_ = nullptr;
  std::size_t element_ = 0;
};

// Where a leaf of fixed position lies in the events of one source.
struct FixedLeaf {
  const std::uint8_t* file = nullptr;
  const Leaf* leaf = nullptr;  // null where this source has no such field
};

bool is_fixed(const Source& source) { return source.type->fixed_bytes.has_value(); }

class Gather {
 public:
  Gather(const std::vector<Source>& sources, const std::vector<Place>& places, Plan& plan)
      : sources_(sources), places_(places), plan_(plan) {}

  void run() {
    for (Column& column : plan_.columns()) column.allocate(places_.size());
    if (std::all_of(sources_.begin(), sources_.end(), is_fixed)) {
      for (std::size_t i = 0; i < plan_.columns().size(); ++i) column_wise(i);
    } else {
      row_wise();
    }
  }

 private:
  void row_wise() {
    RowSink sink(plan_.columns());
    std::vector<std::uint64_t> slots;
    for (std::size_t row = 0; row < places_.size(); ++row) {
      const Place place = places_[row];
      const Source& source = sources_[place.source()];
      const Packet& packet = source.stream->packet_at(place.bit());
      Cursor cursor{source.stream->data() + packet.offset, place.bit() - packet.offset * 8, packet.content_bits};
      sink.begin(plan_.column_of()[place.source()], row);
      walk(source.type->layout, cursor, slots, sink);
      sink.end();
    }
  }

  void column_wise(std::size_t index) {
    Column& column = plan_.columns()[index];
    const std::vector<FixedLeaf> leaves = leaves_of(static_cast<std::int32_t>(index));
    for (std::size_t row = 0; row < places_.size(); ++row) {
      const Place place = places_[row];
      const FixedLeaf& from = leaves[place.source()];
      if (from.leaf == nullptr) {
        column.mark_missing(row);
        if (column.shape == ColumnShape::list && column.width == 0) column.offsets.push_back(column.offsets.back());
        continue;
      }
      store(column, row, from, place.bit() + *from.leaf->fixed_bit);
    }
  }

  [[nodiscard]] std::vector<FixedLeaf> leaves_of(std::int32_t index) const {
    std::vector<FixedLeaf> result(sources_.size());
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const auto& column_of = plan_.column_of()[i];
      const auto found = std::find(column_of.begin(), column_of.end(), index);
      if (found == column_of.end()) continue;
      const auto leaf = static_cast<std::size_t>(std::distance(column_of.begin(), found));
      result[i] = {sources_[i].stream->data(), &sources_[i].type->layout.leaves[leaf]};
    }
    return result;
  }

  static std::uint64_t load(const std::uint8_t* file, std::uint64_t bit, const Leaf& leaf) {
    const std::uint64_t value = load_bits(file, bit, leaf.size, leaf.order);
    return leaf.is_signed ? sign_extend(value, leaf.size) : value;
  }

  static void store_one(std::uint8_t* base, std::size_t index, ElementType type, const std::uint8_t* file,
                        std::uint64_t bit, const Leaf& leaf) {
    const bool is_float = leaf.kind == LeafKind::floating || leaf.kind == LeafKind::floating_list;
    const std::uint64_t value = load(file, bit, leaf);
    if (is_float && leaf.size == 32) {
      store_floating(base, index, type, std::bit_cast<float>(static_cast<std::uint32_t>(value)));
    } else if (is_float) {
      store_floating(base, index, type, std::bit_cast<double>(value));
    } else if (type == ElementType::f64) {
      store_floating(base, index, type, static_cast<double>(static_cast<std::int64_t>(value)));
    } else {
      store_integer(base, index, type, value);
    }
  }

  static void store(Column& column, std::size_t row, const FixedLeaf& from, std::uint64_t bit) {
    const Leaf& leaf = *from.leaf;
    if (column.shape == ColumnShape::text) {
      const auto* at = reinterpret_cast<const char*>(from.file + bit / 8);
      store_integer(column.fixed.get(), row, ElementType::u32, column.dictionary.code({at, ::strnlen(at, leaf.count)}));
    } else if (column.shape == ColumnShape::scalar) {
      store_one(column.fixed.get(), row, column.type, from.file, bit, leaf);
    } else {
      store_list(column, row, from.file, bit, leaf);
    }
  }

  static void store_list(Column& column, std::size_t row, const std::uint8_t* file, std::uint64_t bit,
                         const Leaf& leaf) {
    std::uint8_t* base = column.fixed.get();
    std::size_t first = row * column.width;
    if (column.width == 0) {
      const std::size_t before = column.elements.size();
      first = before / bytes_of(column.type);
      column.elements.resize(before + leaf.count * bytes_of(column.type));
      base = column.elements.data();
      column.offsets.push_back(column.offsets.back() + leaf.count);
    }
    for (std::uint32_t i = 0; i < leaf.count; ++i) {
      store_one(base, first + i, column.type, file, bit + std::uint64_t{i} * leaf.size, leaf);
    }
  }

  const std::vector<Source>& sources_;
  const std::vector<Place>& places_;
  Plan& plan_;
};

void fill_origin(Table& table, const std::vector<Source>& sources, const std::vector<Place>& places) {
  std::vector<const Packet*> current(sources.size(), nullptr);
  for (std::size_t row = 0; row < places.size(); ++row) {
    const Place place = places[row];
    const Source& source = sources[place.source()];
    const Packet*& packet = current[place.source()];
    if (packet == nullptr || place.bit() >= packet->offset * 8 + packet->content_bits) {
      packet = &source.stream->packet_at(place.bit());
    }
    table.cpu_id[row] = static_cast<std::int32_t>(packet->cpu);
    table.trace[row] = static_cast<std::uint32_t>(source.trace);
  }
}

// Rows may take more than their events did, but not without bound: layouts of one name
// that share no field, or thousands of empty lists, could ask for more than there is.
void check_size(const std::string& name, const std::vector<Source>& sources, std::size_t rows, const Plan& plan) {
  constexpr std::uint64_t kMostTimesInput = 64;
  constexpr std::uint64_t kAlwaysAllowed = 64U << 20U;
  std::uint64_t input = 0;
  const Stream* last = nullptr;
  for (const Source& source : sources) {
    if (source.stream != last) input += source.stream->packets().empty() ? 0 : source.stream->size();
    last = source.stream;
  }
  const auto bytes = static_cast<unsigned __int128>(rows) * plan.bytes_per_row();
  if (bytes <= kAlwaysAllowed + kMostTimesInput * input) return;
  throw Unreadable(sources.front().stream->trace().metadata_path, std::nullopt,
                   "the fields declared for '" + name + "' take " +
                       std::to_string(static_cast<std::uint64_t>(bytes >> 20U)) + " MiB for events of " +
                       std::to_string(input >> 20U) + " MiB; read fewer of them");
}

}  // namespace

Table build_table(const std::string& name, std::vector<Source> sources, const std::set<std::string>& wanted) {
  if (sources.size() >= (std::size_t{1} << (64 - Place::kShift))) throw std::length_error("too many streams");
  // A table without events keeps one source, which says what its columns would be.
  std::erase_if(sources, [&](const Source& source) { return source.events.empty() && &source != &sources.front(); });
  Table table;
  table.name = name;
  for (const Source& source : sources) table.rows += source.events.size();
  table.timestamp_ns = std::make_unique_for_overwrite<std::int64_t[]>(table.rows);
  table.cpu_id = std::make_unique_for_overwrite<std::int32_t[]>(table.rows);
  table.trace = std::make_unique_for_overwrite<std::uint32_t[]>(table.rows);
  Plan plan(sources, wanted);
  check_size(name, sources, table.rows, plan);
  const std::vector<Place> places = merge(sources, table.timestamp_ns.get(), table.rows);
  fill_origin(table, sources, places);
  Gather(sources, places, plan).run();
  table.columns = std::move(plan.columns());
  return table;
}

}  // namespace ldos::ctf
