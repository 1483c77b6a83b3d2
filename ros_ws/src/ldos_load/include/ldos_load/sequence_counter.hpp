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

#ifndef LDOS_LOAD__SEQUENCE_COUNTER_HPP_
#define LDOS_LOAD__SEQUENCE_COUNTER_HPP_

#include <cstdint>
#include <optional>

namespace ldos_load
{

/// Counts the messages of one publisher, and those that are missing between them.
///
/// Messages before the first received one are not missing. The count continues if a publisher
/// restarts at 0.
class SequenceCounter
{
public:
  /// Takes a received message; without a sequence number it is only counted.
  void observe(std::optional<std::uint64_t> sequence);

  std::uint64_t received() const {return received_;}
  std::uint64_t lost() const {return lost_;}

private:
  std::uint64_t received_{0};
  std::uint64_t lost_{0};
  std::optional<std::uint64_t> expected_;
};

}  // namespace ldos_load

#endif  // LDOS_LOAD__SEQUENCE_COUNTER_HPP_
