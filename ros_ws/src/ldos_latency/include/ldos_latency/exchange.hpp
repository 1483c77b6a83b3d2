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

#ifndef LDOS_LATENCY__EXCHANGE_HPP_
#define LDOS_LATENCY__EXCHANGE_HPP_

#include <cstdint>
#include <optional>
#include <vector>

namespace ldos_latency
{

/// Nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share.
std::int64_t now_ns();

struct ExchangeSettings
{
  std::int64_t warm_up_ns = 0;
  std::int64_t duration_ns = 0;
  /// An answer that takes longer is lost.
  std::int64_t patience_ns = 0;
  /// Interval between messages; with 0, the next follows the answer.
  std::int64_t interval_ns = 0;
};

/// State and measurements of an exchange of messages; independent of the middleware.
class Exchange
{
public:
  Exchange(const ExchangeSettings & settings, std::int64_t begin_ns);

  /// The number of the message that is to be sent now; none while an answer is waited for, it is
  /// not due yet, or the measurement has ended. Answers beyond the time limit are lost.
  std::optional<std::uint32_t> next(std::int64_t time_ns);

  /// Takes an answer, stamped by the other side with the time at which it took the message.
  void close(std::uint32_t number, std::int64_t stamp_ns, std::int64_t time_ns);

  bool is_over(std::int64_t time_ns) const;

  /// The time at which `next` has to be called again if no answer arrives before.
  std::int64_t next_moment() const;

  std::uint64_t sent() const {return sent_;}
  std::uint64_t lost() const {return lost_;}
  std::uint64_t late() const {return late_;}
  /// Time from the end of the warm-up to the last answer, or to the time limit of a missing one.
  std::int64_t elapsed_ns() const {return elapsed_ns_;}
  const std::vector<std::int64_t> & round_trips() const {return round_trips_;}
  const std::vector<std::int64_t> & ways_there() const {return ways_there_;}

private:
  bool counts() const {return sent_at_ns_ >= measure_from_ns_;}

  ExchangeSettings settings_;
  std::int64_t measure_from_ns_;
  std::int64_t end_ns_;
  std::int64_t due_ns_;
  std::int64_t sent_at_ns_ = 0;
  std::uint32_t number_ = 0;
  bool is_open_ = false;
  std::uint64_t sent_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t late_ = 0;
  std::int64_t elapsed_ns_ = 0;
  std::vector<std::int64_t> round_trips_;
  std::vector<std::int64_t> ways_there_;
};

}  // namespace ldos_latency

#endif  // LDOS_LATENCY__EXCHANGE_HPP_
