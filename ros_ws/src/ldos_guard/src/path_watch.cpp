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

#include "ldos_guard/path_watch.hpp"

#include <optional>
#include <utility>

namespace ldos_guard
{

PathWatch::PathWatch(std::int64_t deadline_ns, std::int64_t silence_ns)
: deadline_ns_(deadline_ns), silence_ns_(silence_ns)
{}

void PathWatch::hear(std::optional<std::int64_t> age_ns, std::int64_t now_ns)
{
  last_ns_ = now_ns;
  if (!age_ns) {
    ++heard_.unstamped;
    return;
  }
  ++window_.received;
  ++heard_.received;
  if (*age_ns > deadline_ns_) {
    ++window_.late;
    ++heard_.late;
  }
}

Window PathWatch::close_window(std::int64_t now_ns)
{
  window_.is_silent = heard_.received > 0 && now_ns - last_ns_ >= silence_ns_;
  heard_.silent_windows += window_.is_silent ? 1 : 0;
  return std::exchange(window_, {});
}

}  // namespace ldos_guard
