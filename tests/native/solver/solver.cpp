// Emits events of its own on two threads, and prints when it did by its own clock: two times around each event.
//
// A line is NAME THREAD ID VALUE BEFORE AFTER, in nanoseconds of CLOCK_MONOTONIC.
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <thread>
#include <vector>

#include "solver_provider.h"

namespace {

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void work(int amount) {
  volatile double sum = 0;
  for (int step = 0; step < amount; ++step) sum = sum + 1.0 / (step + 1);
}

std::mutex printing;

template <typename Emit>
void emit(const char *name, int thread, long id, double value, Emit write) {
  const std::int64_t before = now_ns();
  write();
  const std::int64_t after = now_ns();
  const std::lock_guard<std::mutex> lock(printing);
  std::printf("%s %d %ld %.17g %ld %ld\n", name, thread, id, value, static_cast<long>(before), static_cast<long>(after));
}

void begin(int thread) { emit("begin", thread, 0, 0, [] { lttng_ust_tracepoint(solver, begin); }); }

void end(int thread, double cost) {
  emit("end", thread, 0, cost, [cost] { lttng_ust_tracepoint(solver, end, cost, "good"); });
}

// Nested spans; every seventh outer one returns early, without its end.
void solve(int thread, int steps) {
  for (int step = 0; step < steps; ++step) {
    begin(thread);
    work(1000 * (1 + step % 5));
    if (step % 7 == 6) continue;
    if (step % 3 == 0) {
      begin(thread);
      work(500);
      end(thread, 0.25 * step);
    }
    end(thread, step);
    emit("tick", thread, thread, 0, [thread] { lttng_ust_tracepoint(solver, tick, thread); });
    if (thread == 1 && step % 4 == 0) emit("retry", thread, 0, 0, [] { lttng_ust_tracepoint(solver, retry); });
  }
}

void ask(int first, int behind) {
  for (int id = first; id < behind; ++id) {
    emit("asked", 0, id, 0, [id] { lttng_ust_tracepoint(solver, asked, static_cast<std::uint64_t>(id)); });
    work(300);
  }
}

// Answers in reverse, on another thread; the last three are never answered, and three that were never asked are.
void answer(int first, int behind) {
  for (int id = behind + 2; id >= first + 3; --id) {
    emit("answered", 1, id, 0, [id] { lttng_ust_tracepoint(solver, answered, id); });
    work(200);
  }
}

}  // namespace

int main() {
  std::thread one(solve, 0, 40), other(solve, 1, 40);
  one.join();
  other.join();
  std::thread asking(ask, 0, 30);
  asking.join();
  std::thread answering(answer, 0, 30);
  answering.join();
  end(2, 1);
  return 0;
}
