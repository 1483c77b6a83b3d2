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

#include "ldos_guard/aimd.hpp"

#include <algorithm>

namespace ldos_guard
{

Aimd::Aimd(const AimdSettings & settings)
: settings_(settings)
{}

void Aimd::observe(const Window & window)
{
  if (is_late(window)) {
    calm_ = 0;
    decrease();
  } else if (window.received > 0 && ++calm_ >= settings_.calm_windows) {
    increase();
  }
}

bool Aimd::is_late(const Window & window) const
{
  const auto late = static_cast<double>(window.late);
  const auto received = static_cast<double>(window.received);
  return window.is_silent || (window.received > 0 && late / received > settings_.late_share);
}

void Aimd::decrease()
{
  const double lower = std::max(settings_.least_share, share_ * settings_.decrease);
  decreases_ += lower < share_ ? 1 : 0;
  share_ = lower;
}

void Aimd::increase()
{
  const double higher = std::min(1.0, share_ + settings_.increase);
  increases_ += higher > share_ ? 1 : 0;
  share_ = higher;
}

}  // namespace ldos_guard
