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

/// What came in a stretch of time.
struct Window
{
  /// Messages whose lateness is known.
  std::uint64_t received{0};
  /// Of these.
  std::uint64_t late{0};
  /// Nothing has come for so long that the path counts as late.
  bool is_silent{false};
};

struct AimdSettings
{
  /// A window with a greater share of late messages is late.
  double late_share{0.1};
  /// The share never falls below.
  double least_share{0.01};
  /// A late window multiplies the share by this.
  double decrease{0.5};
  /// So many calm windows in a row let the share rise, and each that follows.
  std::uint64_t calm_windows{10};
  /// By this.
  double increase{0.05};
};

/// Share of their rate that publishers may use: additive increase, multiplicative decrease.
///
/// A window in which nothing came, and that is not silent, says nothing. pytest-ldos has the same
/// law (`load/throttle_law.py`); both are tested with `test/law_table.json`.
///
/// Reference: Chiu & Jain, Analysis of the increase and decrease algorithms for congestion
/// avoidance in computer networks, Computer Networks and ISDN Systems 17 (1989).
class Aimd
{
public:
  explicit Aimd(const AimdSettings & settings);

  /// A window has ended.
  void observe(const Window & window);

  /// Above 0 and up to 1.
  double share() const {return share_;}
  /// Windows that made the share smaller.
  std::uint64_t decreases() const {return decreases_;}
  /// Windows that made it greater.
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
