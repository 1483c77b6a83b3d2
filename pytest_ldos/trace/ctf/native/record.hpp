// Reads one small struct (packet header, packet context, event header) by name.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "walk.hpp"

namespace ldos::ctf {

struct Record {
  const Layout* layout = nullptr;
  std::vector<std::uint64_t> values;  // one per leaf
  std::vector<bool> present;
  std::vector<std::uint64_t> uuid;    // elements of the list of this name

  [[nodiscard]] std::optional<std::uint64_t> find(std::string_view name) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (present[i] && layout->leaves[i].name == name) return values[i];
    }
    return std::nullopt;
  }
};

class RecordSink {
 public:
  explicit RecordSink(Record& record) : record_(record) {}

  void integer(std::int32_t leaf, std::uint64_t value) {
    const auto index = static_cast<std::size_t>(leaf);
    record_.values[index] = value;
    record_.present[index] = true;
  }
  void floating(std::int32_t, double) {}
  void text(std::int32_t, std::string_view) {}
  void list_begin(std::int32_t, std::uint64_t) {}
  void integer_element(std::int32_t leaf, std::uint64_t value) {
    if (record_.layout->leaves[static_cast<std::size_t>(leaf)].name == "uuid") record_.uuid.push_back(value);
  }
  void floating_element(std::int32_t, double) {}
  static constexpr bool kReadsElements = true;

 private:
  Record& record_;
};

inline Record read_record(const Layout& layout, Cursor& cursor, std::vector<std::uint64_t>& slots) {
  Record record;
  record.layout = &layout;
  record.values.assign(layout.leaves.size(), 0);
  record.present.assign(layout.leaves.size(), false);
  RecordSink sink(record);
  walk(layout, cursor, slots, sink);
  return record;
}

}  // namespace ldos::ctf
