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

#ifndef LDOS_TOPOLOGY__SAMPLES_HPP_
#define LDOS_TOPOLOGY__SAMPLES_HPP_

#include <cstdint>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ldos_topology
{

/// CLOCK_MONOTONIC, which all processes of a machine share.
std::int64_t monotonic_ns();

/// One message that arrived; in the file as five 64-bit integers of this machine's byte order.
struct Sample
{
  std::int64_t receiver;
  std::int64_t sender;
  std::int64_t number;
  std::int64_t sent_ns;
  std::int64_t received_ns;
};
static_assert(sizeof(Sample) == 40);

/// Messages that arrived in this process. Any thread may add some.
class SampleFile
{
public:
  explicit SampleFile(const std::string & path);

  void add(const Sample & sample);

  /// True if the newest sample of a receiver from a sender is the last of a number of messages.
  bool has_all(std::int64_t receiver, std::int64_t sender, std::int64_t sent) const;

  /// Writes new samples; throws std::ios_base::failure if it cannot.
  void flush();

private:
  mutable std::mutex mutex_;
  std::ofstream file_;
  std::vector<Sample> pending_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> newest_;
};

}  // namespace ldos_topology

#endif  // LDOS_TOPOLOGY__SAMPLES_HPP_
