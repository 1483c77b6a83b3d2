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


#include "ldos_load/error_bins.hpp"

#include <bit>

namespace ldos_load
{

std::size_t ErrorBins::bin_of(std::int64_t error_ns)
{
  // Unsigned, so that the smallest number has a size, too.
  const auto as_unsigned = static_cast<std::uint64_t>(error_ns);
  const std::uint64_t size_ns = error_ns < 0 ? 0U - as_unsigned : as_unsigned;
  const auto width = static_cast<std::size_t>(std::bit_width(size_ns));
  const std::size_t shift = width > bits ? width - bits : 0;
  return shift * bins_an_octave + static_cast<std::size_t>(size_ns >> shift);
}

void ErrorBins::add(std::int64_t error_ns)
{
  counts_[bin_of(error_ns)].fetch_add(1, std::memory_order_relaxed);
}

CountsByBin ErrorBins::counts() const
{
  CountsByBin found;
  for (std::size_t bin = 0; bin < counts_.size(); ++bin) {
    if (const auto count = counts_[bin].load(std::memory_order_relaxed); count > 0) {
      found[bin] = count;
    }
  }
  return found;
}

}  // namespace ldos_load
