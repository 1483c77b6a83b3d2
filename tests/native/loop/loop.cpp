// A control loop with planted faults. It prints how many of each there were, by kind, and in how many cycles.
//
// Prints "ready" after a first cycle, runs its cycles after a line of standard input, prints the counts, and ends after
// another line. A second thread holds a mutex until the loop's thread sleeps for it.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "ldos_provider.h"
#include "ros2_provider.h"

namespace {

constexpr int kCycles = 1000;
constexpr std::uint64_t kNode = 1, kTimer = 2, kCallback = 3;

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
std::atomic<bool> wanted{false}, held{false}, over{false};
int loop_thread = 0;

bool sleeps(int thread) {
  char path[64], line[512];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  const int file = open(path, O_RDONLY);
  const auto size = read(file, line, sizeof line - 1);
  close(file);
  line[size > 0 ? size : 0] = 0;
  const char *end = std::strrchr(line, ')');
  return end != nullptr && end[2] == 'S';
}

void hold() {
  while (!over) {
    if (!wanted) continue;
    pthread_mutex_lock(&mutex);
    wanted = false;
    held = true;
    while (!sleeps(loop_thread)) std::this_thread::yield();
    held = false;
    pthread_mutex_unlock(&mutex);
  }
}

}  // namespace

__attribute__((noinline)) std::unique_ptr<double[]> planted_allocation() {
  return std::unique_ptr<double[]>(new double[100]);
}
__attribute__((noinline)) void planted_fault(volatile char *page) { *page = 1; }
__attribute__((noinline)) void planted_wait() { poll(nullptr, 0, 1); }
__attribute__((noinline)) void planted_lock() {
  wanted = true;
  while (!held) std::this_thread::yield();
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
}

int main() {
  const auto page_size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  loop_thread = gettid();
  lttng_ust_tracepoint(ros2, rcl_init, 1, "4");
  lttng_ust_tracepoint(ros2, rcl_node_init, kNode, kNode, "loop", "/");
  lttng_ust_tracepoint(ros2, rcl_timer_init, kTimer, 10'000'000);
  lttng_ust_tracepoint(ros2, rclcpp_timer_callback_added, kTimer, kCallback);
  lttng_ust_tracepoint(ros2, rclcpp_timer_link_node, kTimer, kNode);
  lttng_ust_tracepoint(ros2, rclcpp_callback_register, kCallback, "work");
  std::thread holder(hold);
  auto *pages = static_cast<char *>(
      mmap(nullptr, page_size * kCycles, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  madvise(pages, page_size * kCycles, MADV_NOHUGEPAGE);
  auto kept = planted_allocation();  // before the recording, and freed within it
  int allocations = 0, frees = 0, faults = 0, waits = 0, locks = 0;
  auto cycle = [&](int number, bool planted) {
    lttng_ust_tracepoint(ldos, control_cycle, number, 0, 0);
    lttng_ust_tracepoint(ros2, callback_start, kCallback, 0);
    if (planted && number % 100 == 7) {
      if (kept) ++frees;
      kept.reset();
      kept = planted_allocation();
      ++allocations;
    }
    if (planted && number % 50 == 8) planted_fault(pages + page_size * number), ++faults;
    lttng_ust_tracepoint(ros2, callback_end, kCallback);
    if (planted && number % 25 == 9) planted_wait(), ++waits;
    if (planted && number % 200 == 10) planted_lock(), ++locks;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  };
  for (int number = 0; number < 3; ++number) cycle(number, false);
  std::puts("ready");
  std::fflush(stdout);
  char line[16];
  if (std::fgets(line, sizeof line, stdin) == nullptr) return 1;
  for (int number = 0; number < kCycles; ++number) cycle(number, true);
  cycle(kCycles, false);
  free(std::malloc(1));  // outside of cycles: the wrapper is used
  std::printf("%d %d %d %d %d %d\n", kCycles, allocations, frees, faults, waits, locks);
  std::fflush(stdout);
  const bool has_ended = std::fgets(line, sizeof line, stdin) != nullptr;
  over = true;
  holder.join();
  return has_ended ? 0 : 1;
}
