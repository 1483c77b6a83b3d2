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

#ifndef LDOS_GOAL_CLIENT__REPETITIONS_HPP_
#define LDOS_GOAL_CLIENT__REPETITIONS_HPP_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "ldos_goal_client/session.hpp"

namespace ldos_goal_client
{

/// Settings shared by all goals of a run.
struct RunSettings
{
  std::string scenario;
  int repetitions{1};
  /// Seed of the first trial, incremented for each trial, and of every motion home; none: random.
  std::optional<std::uint32_t> seed;
  double planning_time_s{};
  double velocity_scaling{};
  double acceleration_scaling{};
  double timeout_s{};
};

/// Ids of 32 random hex characters.
std::string random_goal_id();

/// Repeats every goal of a set, each time from home. Trials get one line each;
/// motions home get none, but the run ends if one fails.
class Repetitions : public Session
{
public:
  Repetitions(
    const std::vector<Goal> & goals, const std::optional<Goal> & home,
    const RunSettings & settings, std::ostream & lines,
    std::function<std::string()> draw_goal_id = random_goal_id);

  void ready() override;
  std::optional<MoveCommand> next() override;
  void ended(const MoveCommand & command, const MoveReport & report) override;
  bool is_over() const override;
  ExitCode exit_code() const override;

private:
  std::deque<MoveCommand> waiting_;
  std::ostream & lines_;
  ExitCode exit_code_{exit_succeeded};
};

}  // namespace ldos_goal_client

#endif  // LDOS_GOAL_CLIENT__REPETITIONS_HPP_
