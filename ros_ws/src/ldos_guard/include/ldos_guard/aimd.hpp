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

#ifndef LDOS_GUARD__AIMD_HPP_
#define LDOS_GUARD__AIMD_HPP_

#include <cstdint>

namespace ldos_guard
{

/// Messages received in a window of time.
struct Window
{
  /// Messages whose lateness is known.
  std::uint64_t received{0};
  /// Of these.
  std::uint64_t late{0};
  /// True if the path has been silent for so long that it counts as late.
  bool is_silent{false};
};

struct AimdSettings
{
  /// A window with a greater share of late messages is late.
  double late_share{0.1};
  /// Lower limit of the share.
  double least_share{0.01};
  /// A late window multiplies the share by this.
  double decrease{0.5};
  /// Consecutive calm windows after which the share rises, with each further one.
  std::uint64_t calm_windows{10};
  /// Increase of the share.
  double increase{0.05};
};

/// Share of their rate that publishers may use: additive increase, multiplicative decrease.
///
/// A window without messages that is not silent changes nothing. pytest-ldos has the same
/// law (`load/throttle_law.py`); both are tested with `test/law_table.json`.
///
/// Reference: Chiu & Jain, Analysis of the increase and decrease algorithms for congestion
/// avoidance in computer networks, Computer Networks and ISDN Systems 17 (1989).
class Aimd
{
public:
  explicit Aimd(const AimdSettings & settings);

  /// Updates the share at the end of a window.
  void observe(const Window & window);

  /// Above 0 and up to 1.
  double share() const {return share_;}
  /// Windows that reduced the share.
  std::uint64_t decreases() const {return decreases_;}
  /// Windows that increased it.
  std::uint64_t increases() const {return increases_;}

private:
  bool is_late(const Window & window) const;
  void decrease();
  void increase();

  AimdSettings settings_;
  double share_{1.0};
  std::uint64_t calm_{0};
  std::uint64_t decreases_{0};
  std::uint64_t increases_{0};
};

}  // namespace ldos_guard

#endif  // LDOS_GUARD__AIMD_HPP_
