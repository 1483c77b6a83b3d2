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

#ifndef LDOS_GOAL_CLIENT__MOTION_HPP_
#define LDOS_GOAL_CLIENT__MOTION_HPP_

#include <cstdint>
#include <optional>
#include <string>

#include "ldos_goal_client/move_command.hpp"
#include "ldos_goal_client/phase.hpp"

namespace ldos_goal_client
{

/// The trajectory that a result carries.
struct Plan
{
  std::int64_t duration_ns{};
  std::uint32_t points{};
};

/// Destination of the markers of a trial.
class Markers
{
public:
  virtual ~Markers() = default;
  virtual void trial_begin(
    const std::string & goal_id, const std::string & scenario,
    std::uint32_t index) = 0;
  virtual void phase(const std::string & goal_id, Phase phase) = 0;
  virtual void plan(const std::string & goal_id, const Plan & plan) = 0;
  virtual void trial_end(const std::string & goal_id, std::int32_t error_code) = 0;
};

/// Puts them into the trace.
class TraceMarkers : public Markers
{
public:
  void trial_begin(
    const std::string & goal_id, const std::string & scenario,
    std::uint32_t index) override;
  void phase(const std::string & goal_id, Phase phase) override;
  void plan(const std::string & goal_id, const Plan & plan) override;
  void trial_end(const std::string & goal_id, std::int32_t error_code) override;
};

/// A running goal: stamps each phase when it is entered. Marks those of trials, and of goals
/// that are only planned.
class Motion
{
public:
  /// Starts its time-out.
  Motion(MoveCommand command, Markers & markers, Clock clock);

  /// Marks the beginning of a trial.
  void begin();

  /// Stamps and marks a phase; the second time it does nothing.
  void enter(Phase phase);

  /// Enters the result, and marks plan and end of a trial.
  void end(std::int32_t error_code, const std::optional<Plan> & plan);

  bool is_overdue() const;

  const MoveCommand & command() const {return command_;}
  const PhaseStamps & stamps() const {return stamps_;}

private:
  bool is_marked() const;

  MoveCommand command_;
  Markers & markers_;
  Clock clock_;
  std::int64_t deadline_ns_;
  PhaseStamps stamps_;
};

}  // namespace ldos_goal_client

#endif  // LDOS_GOAL_CLIENT__MOTION_HPP_
