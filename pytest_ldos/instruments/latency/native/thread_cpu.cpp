#include "thread_cpu.hpp"

#include <pthread.h>
#include <sched.h>

#include <system_error>

namespace ldos::pingpong {

void confine_thread(int cpu) {
  if (cpu < 0) {
    return;
  }
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<unsigned>(cpu), &cpus);
  const int error = pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
  if (error != 0) {
    throw std::system_error(error, std::generic_category(), "a thread cannot be confined to its CPU");
  }
}

}  // namespace ldos::pingpong
