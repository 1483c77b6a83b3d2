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

#include "ldos_topology/samples.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace ldos_topology
{

std::int64_t monotonic_ns()
{
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

SampleFile::SampleFile(const std::string & path)
{
  file_.exceptions(std::ios::failbit | std::ios::badbit);
  file_.open(path, std::ios::binary | std::ios::trunc);
}

void SampleFile::add(const Sample & sample)
{
  const std::lock_guard lock(mutex_);
  pending_.push_back(sample);
  const auto [place, is_first] =
    newest_.try_emplace({sample.receiver, sample.sender}, sample.number);
  place->second = std::max(place->second, sample.number);
}

bool SampleFile::has_all(std::int64_t receiver, std::int64_t sender, std::int64_t sent) const
{
  const std::lock_guard lock(mutex_);
  const auto place = newest_.find({receiver, sender});
  return sent == 0 || (place != newest_.end() && place->second >= sent - 1);
}

void SampleFile::flush()
{
  std::vector<Sample> written;
  {
    const std::lock_guard lock(mutex_);
    written.swap(pending_);
    pending_.reserve(written.size());
  }
  file_.write(
    reinterpret_cast<const char *>(written.data()),
    static_cast<std::streamsize>(written.size() * sizeof(Sample)));
  file_.flush();
}

}  // namespace ldos_topology
