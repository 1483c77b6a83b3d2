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

#ifndef LDOS_GUARD__REPORT_HPP_
#define LDOS_GUARD__REPORT_HPP_

#include <cstdint>
#include <string>
#include <vector>

#include "ldos_guard/path_watch.hpp"

namespace ldos_guard
{

/// Counts and actions of a guard so far.
struct Progress
{
  /// Of their rate that publishers may use.
  double share{1.0};
  Heard heard;
  std::uint64_t decreases{0};
  std::uint64_t increases{0};
  /// Publishers that have not confirmed the share, each with the reason.
  std::vector<std::string> missing;
};

/// The report of a guard as a line of JSON with a newline.
std::string report_line(std::int64_t mono_ns, const Progress & progress, bool is_final);

}  // namespace ldos_guard

#endif  // LDOS_GUARD__REPORT_HPP_
