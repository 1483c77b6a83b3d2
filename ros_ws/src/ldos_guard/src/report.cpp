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

#include "ldos_guard/report.hpp"

#include <string>

#include <nlohmann/json.hpp>

namespace ldos_guard
{

std::string report_line(std::int64_t mono_ns, const Progress & progress, bool is_final)
{
  using nlohmann::ordered_json;
  const ordered_json line{
    {"mono_ns", mono_ns},
    {"share", progress.share},
    {"received", progress.heard.received},
    {"late", progress.heard.late},
    {"unstamped", progress.heard.unstamped},
    {"silent_windows", progress.heard.silent_windows},
    {"decreases", progress.decreases},
    {"increases", progress.increases},
    {"missing", progress.missing},
    {"final", is_final}};
  // Answers of other nodes may have any bytes.
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ldos_guard
