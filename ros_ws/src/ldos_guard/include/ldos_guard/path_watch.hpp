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

#ifndef LDOS_GUARD__PATH_WATCH_HPP_
#define LDOS_GUARD__PATH_WATCH_HPP_

#include <cstdint>
#include <optional>

#include "ldos_guard/aimd.hpp"

namespace ldos_guard
{

/// Messages received at the end of a path since the beginning.
struct Heard
{
  /// Messages whose lateness is known.
  std::uint64_t received{0};
  /// Of these.
  std::uint64_t late{0};
  /// Messages of unknown lateness, because they have no time.
  std::uint64_t unstamped{0};
  std::uint64_t silent_windows{0};
};

/// Counts messages at the end of a path, and late ones, in windows of time.
///
/// Lateness uses the clock of the messages' stamps, silence CLOCK_MONOTONIC. A path that
/// has had no message may not have begun, and is not silent.
class PathWatch
{
public:
  /// @param deadline_ns a message older than this is late.
  /// @param silence_ns a window is silent if the last message is older than this at its end.
  PathWatch(std::int64_t deadline_ns, std::int64_t silence_ns);

  /// Counts a message.
  /// @param age_ns time since its stamp.
  void hear(std::optional<std::int64_t> age_ns, std::int64_t now_ns);

  /// Ends a window; the next one begins.
  Window close_window(std::int64_t now_ns);

  const Heard & heard() const {return heard_;}

private:
  std::int64_t deadline_ns_;
  std::int64_t silence_ns_;
  std::int64_t last_ns_{0};
  Window window_;
  Heard heard_;
};

}  // namespace ldos_guard

#endif  // LDOS_GUARD__PATH_WATCH_HPP_
