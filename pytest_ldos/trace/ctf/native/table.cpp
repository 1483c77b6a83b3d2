#include "table.hpp"

#include <cstring>

#include "unreadable.hpp"

namespace ldos::ctf {

namespace {

// One number for all sources, if `number_of` gives the same for each.
template <typename NumberOf>
Origin origin(const std::vector<Source>& sources, std::size_t rows, const NumberOf& number_of) {
  Origin result;
  result.of_all = number_of(sources.front());
  for (const Source& source : sources) {
    if (number_of(source) != result.of_all) result.of_all = std::nullopt;
  }
  if (!result.of_all) result.of_each = Buffer(rows, sizeof(std::int32_t));
  return result;
}

// Rows may take more than their events did, but not without bound: layouts of one name
// that share no field, or thousands of empty lists, could need more than is available.
void check_size(const Table& table, const std::vector<Source>& sources, const Plan& plan) {
  constexpr std::uint64_t kMostTimesInput = 64;
  constexpr std::uint64_t kAlwaysAllowed = 64U << 20U;
  std::uint64_t input = 0;
  const Stream* last = nullptr;
  for (const Source& source : sources) {
    if (source.stream != last) input += source.stream->bytes();
    last = source.stream;
  }
  const auto bytes = static_cast<unsigned __int128>(table.rows) * plan.bytes_per_row();
  if (bytes <= kAlwaysAllowed + kMostTimesInput * input) return;
  throw Unreadable(sources.front().stream->trace().metadata_path, std::nullopt,
                   "the fields declared for '" + table.name + "' take " +
                       std::to_string(static_cast<std::uint64_t>(bytes >> 20U)) + " MiB for events of " +
                       std::to_string(input >> 20U) + " MiB; read fewer of them");
}

}  // namespace

TableBuilder::TableBuilder(std::string name, std::vector<Source> sources, const std::set<std::string>& wanted,
                           std::size_t chunks)
    : sources_(std::move(sources)), plan_(make_plan(sources_, wanted)), texts_(chunks) {
  table_.name = std::move(name);
  allocate(chunks);
}

void TableBuilder::allocate(std::size_t chunks) {
  first_row_.push_back(0);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    for (const Source& source : sources_) table_.rows += source.rows(chunk);
    first_row_.push_back(table_.rows);
  }
  check_size(table_, sources_, plan_);
  table_.timestamp_ns = Buffer(table_.rows, sizeof(std::int64_t));
  table_.cpu_id = origin(sources_, table_.rows, [](const Source& source) { return source.stream->only_cpu(); });
  table_.trace = origin(sources_, table_.rows, [](const Source& source) {
    return std::optional(static_cast<std::int32_t>(source.stream->trace_number()));
  });
  first_element_.resize(plan_.columns.size());
  for (std::size_t i = 0; i < plan_.columns.size(); ++i) {
    Column& column = plan_.columns[i];
    if (column.is_open()) place_elements(i, chunks);
    column.allocate(table_.rows, column.is_open() ? first_element_[i].back() : 0);
  }
}

void TableBuilder::place_elements(std::size_t column, std::size_t chunks) {
  std::vector<std::size_t>& first = first_element_[column];
  first.push_back(0);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) first.push_back(first.back() + elements(chunk, column));
}

std::size_t TableBuilder::elements(std::size_t chunk, std::size_t column) const {
  std::size_t count = 0;
  for (std::size_t source = 0; source < sources_.size(); ++source) {
    const auto& columns = plan_.any_leaf[source];
    for (std::size_t leaf = 0; leaf < columns.size(); ++leaf) {
      if (columns[leaf] == static_cast<std::int32_t>(column)) count += sources_[source].elements(chunk, leaf);
    }
  }
  return count;
}

Table TableBuilder::finish() {
  for (std::size_t i = 0; i < plan_.columns.size(); ++i) {
    if (plan_.columns[i].shape == ColumnShape::text) join_texts(i);
    drop_needless_mask(plan_.columns[i]);
  }
  table_.columns = std::move(plan_.columns);
  return std::move(table_);
}

// Chunks have codes of their own. Taken in order of time, the joint codes are those that one
// chunk would have given.
void TableBuilder::join_texts(std::size_t number) {
  Column& column = plan_.columns[number];
  auto* const codes = column.values.as<std::uint32_t>();
  for (std::size_t chunk = 0; chunk + 1 < first_row_.size(); ++chunk) {
    if (texts_[chunk].empty()) continue;
    Dictionary& found = texts_[chunk][number];
    if (column.dictionary.entries().empty()) {
      column.dictionary = std::move(found);
      continue;
    }
    std::vector<std::uint32_t> joint;
    for (const std::string_view text : found.entries()) joint.push_back(column.dictionary.code(text));
    bool is_same = true;
    for (std::uint32_t i = 0; i < joint.size(); ++i) is_same &= joint[i] == i;
    if (is_same) continue;
    for (std::size_t row = first_row_[chunk]; row < first_row_[chunk + 1]; ++row) {
      if (column.valid.empty() || column.valid.data()[row] != 0) codes[row] = joint[codes[row]];
    }
  }
}

void TableBuilder::drop_needless_mask(Column& column) const {
  if (!column.valid.empty() && std::memchr(column.valid.data(), 0, table_.rows) == nullptr) column.valid = Buffer();
}

}  // namespace ldos::ctf
