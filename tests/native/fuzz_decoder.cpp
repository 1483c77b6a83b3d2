// A whole trace from one input: an options byte, then the metadata and up to four stream
// files, each after its length (32 bits, little endian). Every outcome but a refusal must
// satisfy the invariants of the decoder's tables, and be the same for any division of the work.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "equal_sessions.hpp"
#include "session.hpp"
#include "tally.hpp"
#include "unreadable.hpp"

namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kMostStreams = 4;

void require(bool holds) {
  if (!holds) std::abort();
}

// A file in memory with a path to open it by.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes content) : descriptor_(::memfd_create("trace", MFD_CLOEXEC)) {
    require(descriptor_ >= 0);
    require(::write(descriptor_, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

Bytes take_part(Bytes& input) {
  if (input.size() < 4) return std::exchange(input, {});
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) length |= std::size_t{input[i]} << (8 * i);
  input = input.subspan(4);
  const Bytes part = input.first(std::min(length, input.size()));
  input = input.subspan(part.size());
  return part;
}

void check_offsets(const ldos::ctf::Column& column, std::size_t rows) {
  require(column.offsets.bytes() == (rows + 1) * sizeof(std::int64_t));
  const std::span offsets(column.offsets.as<const std::int64_t>(), rows + 1);
  require(offsets.front() == 0);
  require(std::is_sorted(offsets.begin(), offsets.end()));
  require(static_cast<std::size_t>(offsets.back()) * bytes_of(column.type) == column.values.bytes());
}

void check_codes(const ldos::ctf::Column& column, std::size_t rows) {
  const auto& words = column.dictionary.entries();
  std::ptrdiff_t letters = 0;
  for (const std::string_view word : words) letters += std::count(word.begin(), word.end(), 'a');
  require(letters >= 0);
  const auto* codes = column.values.as<const std::uint32_t>();
  for (std::size_t row = 0; row < rows; ++row) {
    const bool is_valid = column.valid.empty() || column.valid.data()[row] != 0;
    require(!is_valid || codes[row] < words.size());
  }
}

void check(const ldos::ctf::Table& table) {
  for (const ldos::ctf::Column& column : table.columns) {
    require(column.rows == table.rows);
    require(column.valid.empty() || column.valid.bytes() == table.rows);
    if (column.shape == ldos::ctf::ColumnShape::text) check_codes(column, table.rows);
    if (column.is_open()) check_offsets(column, table.rows);
  }
}

struct Read {
  ldos::ctf::Opened opened;
  ldos::ctf::Session session;
};

// Nothing if it is refused. A difference between the passes is no valid reason here, because nothing
// changes the files.
std::optional<Read> read(const ldos::ctf::TraceFiles& files, const ldos::ctf::Selection& selection,
                         ldos::ctf::OnCorrupt on_corrupt) {
  try {
    ldos::ctf::Opened opened = ldos::ctf::open_session({files}, on_corrupt, selection.splitting.threads);
    ldos::ctf::Session session = ldos::ctf::read_session(opened, selection);
    return Read{std::move(opened), std::move(session)};
  } catch (const ldos::ctf::Unreadable& error) {
    require(error.what() != std::string(ldos::ctf::changed(error.file).what()));
    return std::nullopt;
  }
}

// Every event is counted once, by all fields that there are.
void check_tally(const Read& read) {
  std::set<std::string> events;
  std::set<std::string> fields;
  for (const auto& table : read.session.tables) {
    events.insert(table.name);
    for (const auto& column : table.columns) fields.insert(column.name);
  }
  const auto counted = ldos::ctf::tally_events(read.opened, events, {fields.begin(), fields.end()}, 2);
  for (const auto& table : read.session.tables) {
    std::uint64_t rows = 0;
    for (const auto& [key, events_of_key] : counted.at(table.name).counts) rows += events_of_key;
    require(rows == table.rows);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes input(data, size);
  if (input.empty()) return 0;
  ldos::ctf::Selection selection;
  const unsigned input_flags = input[0];
  const auto on_corrupt = (input[0] & 1U) != 0 ? ldos::ctf::OnCorrupt::skip : ldos::ctf::OnCorrupt::refuse;
  if ((input[0] & 2U) != 0) selection.window = {100, 10'000};
  const bool splits = (input[0] & 4U) != 0;
  input = input.subspan(1);
  const MemoryFile metadata(take_part(input));
  std::vector<std::unique_ptr<MemoryFile>> streams;
  ldos::ctf::TraceFiles files{metadata.path(), {}};
  while (!input.empty() && streams.size() < kMostStreams) {
    streams.push_back(std::make_unique<MemoryFile>(take_part(input)));
    files.streams.push_back(streams.back()->path());
  }
  const auto whole = read(files, selection, on_corrupt);
  if (whole) {
    for (const auto& table : whole->session.tables) check(table);
    if ((input_flags & 2U) == 0) check_tally(*whole);
  }
  if (splits) {
    selection.splitting = {.threads = 3, .chunk_bytes = 1};
    const auto split = read(files, selection, on_corrupt);
    require(whole.has_value() == split.has_value() && (!whole || equal(whole->session, split->session)));
  }
  return 0;
}
