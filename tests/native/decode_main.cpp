// Decodes traces named on the command line, for runs under sanitizers. Each argument is a
// directory with `metadata` and stream files; refusals are reported, not failures.

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "session.hpp"
#include "unreadable.hpp"

namespace {

ldos::ctf::TraceFiles files_of(const std::filesystem::path& directory) {
  ldos::ctf::TraceFiles files;
  files.metadata = directory / "metadata";
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file() && entry.path().filename() != "metadata") files.streams.push_back(entry.path());
  }
  return files;
}

std::size_t count_events(const std::string& directory) {
  ldos::ctf::Selection selection;
  selection.splitting.threads = 2;
  std::size_t events = 0;
  const auto opened = ldos::ctf::open_session({files_of(directory)}, ldos::ctf::OnCorrupt::refuse);
  for (const auto& table : ldos::ctf::read_session(opened, selection).tables) events += table.rows;
  return events;
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    try {
      std::printf("%s: %zu events\n", arguments[i], count_events(arguments[i]));
    } catch (const ldos::ctf::Unreadable& error) {
      std::printf("%s: refused: %s\n", arguments[i], error.what());
    }
  }
  return 0;
}
