// Counts the events of all traces below a folder with yactfr, which decodes every field, stream by stream.
//
//   g++ -std=c++20 -O3 -DNDEBUG benchmarks/readers/yactfr_count.cpp -lyactfr -o yactfr-count
//
// `make bench` runs `yactfr-count` if it is on the PATH, or the program that YACTFR_COUNT names.

#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <yactfr/yactfr.hpp>

namespace fs = std::filesystem;

std::uint64_t count_events(const fs::path& metadata) {
  std::ifstream file{metadata, std::ios::binary};
  const auto text = yactfr::createMetadataStream(file)->text();
  const auto trace = yactfr::fromMetadataText(text).first;
  std::uint64_t events = 0;
  for (const auto& entry : fs::directory_iterator{metadata.parent_path()}) {
    if (!entry.is_regular_file() || entry.path() == metadata || entry.file_size() == 0) continue;
    yactfr::MemoryMappedFileViewFactory stream{entry.path().string()};
    yactfr::ElementSequence elements{*trace, stream};
    const auto end = elements.end();
    for (auto element = elements.begin(); element != end; ++element) {
      events += element->isEventRecordBeginningElement() ? 1 : 0;
    }
  }
  return events;
}

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: yactfr-count FOLDER\n";
    return 2;
  }
  try {
    std::uint64_t events = 0;
    for (const auto& entry : fs::recursive_directory_iterator{arguments[1]}) {
      if (entry.path().filename() == "metadata") events += count_events(entry.path());
    }
    std::cout << events << '\n';
  } catch (const std::exception& error) {
    std::cerr << "yactfr-count: " << error.what() << '\n';
    return 1;
  }
}
