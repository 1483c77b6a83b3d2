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

#ifndef LDOS_LOAD__COUNTS_HPP_
#define LDOS_LOAD__COUNTS_HPP_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ldos_load/error_bins.hpp"

namespace ldos_load
{

/// Numbers of messages, by topic.
using CountsByTopic = std::map<std::string, std::uint64_t>;

/// Time in nanoseconds of CLOCK_MONOTONIC.
std::int64_t monotonic_ns();

/// Keeps this process alive when the reader of its reports has ended: it still has to clean up.
void survive_without_reader();

/// Names of topics: a prefix and a number each.
std::vector<std::string> topic_names(
  const std::string & prefix, std::int64_t first_number, std::int64_t count);

/// Progress of a publisher.
struct Progress
{
  CountsByTopic published;
  /// Messages that were due so far, of all topics together.
  std::uint64_t requested{0};
  /// Messages of those that the throttle allows.
  std::uint64_t allowed{0};
  /// Messages that were allowed and will not be sent.
  std::uint64_t given_up{0};
  /// Errors of the intervals between two sends on a topic.
  CountsByBin error_bins;
};

/// The report of a publisher as a line of JSON with a newline.
std::string published_line(std::int64_t mono_ns, const Progress & progress, bool is_final);

/// The report of a counter as a line of JSON with a newline.
std::string received_line(
  std::int64_t mono_ns, const CountsByTopic & received, const CountsByTopic & lost, bool is_final);

}  // namespace ldos_load

#endif  // LDOS_LOAD__COUNTS_HPP_
