// Decodes traces named on the command line with one thread and with several on chunks as small as
// they get, for runs under sanitizers: both must end in the same tables or in the same refusal.
// Each argument is a directory with `metadata` and stream files.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "session.hpp"
#include "unreadable.hpp"

namespace {

using namespace ldos::ctf;

TraceFiles files_of(const std::filesystem::path& directory) {
  TraceFiles files;
  files.metadata = directory / "metadata";
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file() && entry.path().filename() != "metadata") files.streams.push_back(entry.path());
  }
  std::sort(files.streams.begin(), files.streams.end());
  return files;
}

struct Outcome {
  Session session;
  std::string refusal;
};

Outcome decode(const std::string& directory, Splitting splitting) {
  Selection selection;
  selection.splitting = splitting;
  Outcome outcome;
  try {
    outcome.session = read_session({files_of(directory)}, selection);
  } catch (const Unreadable& error) {
    outcome.refusal = error.file + " " + std::to_string(error.offset.value_or(0)) + " " + error.what();
  }
  return outcome;
}

bool equal(const Buffer& a, const Buffer& b) {
  return a.bytes() == b.bytes() && (a.empty() || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

bool equal(const Origin& a, const Origin& b) { return a.of_all == b.of_all && equal(a.of_each, b.of_each); }

bool equal(const Column& a, const Column& b) {
  return a.name == b.name && equal(a.values, b.values) && equal(a.offsets, b.offsets) && equal(a.valid, b.valid) &&
         a.dictionary.entries() == b.dictionary.entries();
}

bool equal(const Table& a, const Table& b) {
  return a.name == b.name && a.rows == b.rows && equal(a.timestamp_ns, b.timestamp_ns) && equal(a.cpu_id, b.cpu_id) &&
         equal(a.trace, b.trace) &&
         std::equal(a.columns.begin(), a.columns.end(), b.columns.begin(), b.columns.end(),
                    [](const Column& one, const Column& other) { return equal(one, other); });
}

bool equal(const Outcome& a, const Outcome& b) {
  return a.refusal == b.refusal &&
         std::equal(a.session.tables.begin(), a.session.tables.end(), b.session.tables.begin(), b.session.tables.end(),
                    [](const Table& one, const Table& other) { return equal(one, other); });
}

}  // namespace

int main(int count, char** arguments) {
  int different = 0;
  for (int i = 1; i < count; ++i) {
    const Outcome one = decode(arguments[i], {.threads = 1});
    const Outcome several = decode(arguments[i], {.threads = 3, .chunk_bytes = 1});
    if (!equal(one, several)) {
      std::printf("%s: differs: '%s', '%s'\n", arguments[i], one.refusal.c_str(), several.refusal.c_str());
      ++different;
    }
  }
  std::printf("%d compared, %d different\n", count - 1, different);
  return different == 0 ? 0 : 1;
}
