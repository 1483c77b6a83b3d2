// A stimulus with the tracepoints of the how-to page. It reports the bounds of the median of its spans by its own clock.
//
// argv[1] is the duration of each span in microseconds. A line of JSON for each trial comes in, another goes out.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>

#include "my_pkg_tp.h"

namespace {

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Sleeps, so that it takes as long on a busy machine.
double solve(long microseconds) {
  timespec left{microseconds / 1'000'000, microseconds % 1'000'000 * 1'000};
  while (nanosleep(&left, &left) != 0) {
  }
  return static_cast<double>(microseconds) / 1'000;
}

}  // namespace

int main(int count, char **arguments) {
  const long microseconds = count > 1 ? std::atol(arguments[1]) : 1'000;
  std::cout << R"({"event": "ready"})" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const std::string key = R"("id": ")";
    const auto at = line.find(key) + key.size();
    const std::string id = line.substr(at, line.find('"', at) - at);
    std::array<std::int64_t, 11> shortest{}, longest{};
    const std::int64_t begin_ns = now_ns();
    for (std::size_t number = 0; number < shortest.size(); ++number) {
      const std::int64_t before_ns = now_ns();
      lttng_ust_tracepoint(my_pkg, solve_begin);
      const std::int64_t began_ns = now_ns();
      const double cost = solve(microseconds);
      const std::int64_t ended_ns = now_ns();
      lttng_ust_tracepoint(my_pkg, solve_end, cost);
      shortest[number] = ended_ns - began_ns;
      longest[number] = now_ns() - before_ns;
    }
    const std::int64_t end_ns = now_ns();
    std::sort(shortest.begin(), shortest.end());
    std::sort(longest.begin(), longest.end());
    std::cout << R"({"event": "ended", "id": ")" << id << R"(", "outcome": "success", "stamps_ns": {"goal_sent": )"
              << begin_ns << R"(, "result": )" << end_ns << R"(}, "numbers": {"shortest_ns": )" << shortest[5]
              << R"(, "longest_ns": )" << longest[5] << "}}" << std::endl;
  }
  return 0;
}
