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


#ifndef LDOS_LOAD__ERROR_BINS_HPP_
#define LDOS_LOAD__ERROR_BINS_HPP_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>

namespace ldos_load
{

/// Numbers of errors, by bin.
using CountsByBin = std::map<std::size_t, std::uint64_t>;

/// Sizes of errors in nanoseconds, counted in bins: 1 ns wide up to 32 ns, then 16 bins for each
/// power of two. pytest-ldos reads them with the same bins (`load/send_errors.py`).
///
/// One thread may add while others read.
class ErrorBins
{
public:
  static std::size_t bin_of(std::int64_t error_ns);

  void add(std::int64_t error_ns);

  /// Counts of the bins that are not empty.
  CountsByBin counts() const;

private:
  static constexpr std::size_t bits = 5;
  static constexpr std::size_t bins_an_octave = std::size_t{1} << (bits - 1);
  static constexpr std::size_t bin_count = (64 - bits + 2) * bins_an_octave;

  std::array<std::atomic<std::uint64_t>, bin_count> counts_{};
};

}  // namespace ldos_load

#endif  // LDOS_LOAD__ERROR_BINS_HPP_
