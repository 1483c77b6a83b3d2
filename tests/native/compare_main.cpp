// Decodes traces named on the command line with one thread and with several on the smallest possible
// chunks, for runs under sanitizers: both must end in the same tables or in the same refusal,
// whether damage is to be refused or skipped.
// Each argument is a directory with `metadata` and stream files.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "equal_sessions.hpp"
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
  Opened opened;
  Session session;
  std::string refusal;
};

Outcome decode(const std::string& directory, Splitting splitting, OnCorrupt on_corrupt) {
  Selection selection;
  selection.splitting = splitting;
  Outcome outcome;
  try {
    outcome.opened = open_session({files_of(directory)}, on_corrupt, splitting.threads);
    outcome.session = read_session(outcome.opened, selection);
  } catch (const Unreadable& error) {
    outcome.refusal = error.file + " " + std::to_string(error.offset.value_or(0)) + " " + error.what();
  }
  return outcome;
}

bool equal(const Outcome& a, const Outcome& b) { return a.refusal == b.refusal && equal(a.session, b.session); }

// Reports a difference.
bool decodes_alike(const std::string& directory, OnCorrupt on_corrupt) {
  const Outcome one = decode(directory, {.threads = 1}, on_corrupt);
  const Outcome several = decode(directory, {.threads = 3, .chunk_bytes = 1}, on_corrupt);
  if (equal(one, several)) return true;
  std::printf("%s: differs: '%s', '%s'\n", directory.c_str(), one.refusal.c_str(), several.refusal.c_str());
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  int different = 0;
  for (int i = 1; i < count; ++i) {
    for (const OnCorrupt on_corrupt : {OnCorrupt::refuse, OnCorrupt::skip}) {
      different += decodes_alike(arguments[i], on_corrupt) ? 0 : 1;
    }
  }
  std::printf("%d compared, %d different\n", count - 1, different);
  return different == 0 ? 0 : 1;
}
