// Copyright (c) 2026 The pytest-ldos authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in
// all copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
// THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
// THE SOFTWARE.

#include "ldos_topology/resources.hpp"

#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <fstream>

namespace ldos_topology
{

Resources read_resources()
{
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  timespec cpu{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  const auto heap = mallinfo2();
  std::int64_t virtual_pages = 0;
  std::int64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> virtual_pages >> resident_pages;
  const std::int64_t page_kb = sysconf(_SC_PAGESIZE) / 1024;
  return {
    cpu.tv_sec * ns_per_s + cpu.tv_nsec,
    static_cast<std::int64_t>(heap.arena / 1024),
    static_cast<std::int64_t>(heap.uordblks / 1024),
    static_cast<std::int64_t>(heap.hblkhd / 1024),
    resident_pages * page_kb,
    virtual_pages * page_kb};
}

}  // namespace ldos_topology
