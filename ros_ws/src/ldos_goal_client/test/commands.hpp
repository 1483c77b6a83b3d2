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

#ifndef COMMANDS_HPP_
#define COMMANDS_HPP_

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "ldos_goal_client/motion.hpp"

namespace ldos_goal_client
{

inline const std::string goal_id = "0123456789abcdef0123456789abcdef";

/// A valid command, which tests modify.
inline nlohmann::json good_command()
{
  return nlohmann::json::parse(
    R"({"goal_id": "0123456789abcdef0123456789abcdef",
        "goal": {"name": "reach", "link": "tip", "joints": null,
                 "pose": {"position": [0.4, 0.2, 0.5], "orientation": [0.707, 0.707, 0.0, 0.0]}},
        "seed": 7, "trial": {"scenario": "cpu_load", "index": 3},
        "start": {"joint_a": 0.5}, "planning_time_s": 5.0, "velocity_scaling": 0.5,
        "acceleration_scaling": 0.25, "timeout_s": 30})");
}

/// Records the markers that were set.
class WrittenMarkers : public Markers
{
public:
  void trial_begin(
    const std::string & id, const std::string & scenario, std::uint32_t index) override
  {
    text += "begin " + id + " " + scenario + " " + std::to_string(index) + "\n";
  }

  void phase(const std::string & id, Phase phase) override
  {
    text += "phase " + id + " " + name_of(phase) + "\n";
  }

  void plan(const std::string & id, const Plan & plan) override
  {
    text += "plan " + id + " " + std::to_string(plan.duration_ns) + " " +
      std::to_string(plan.points) + "\n";
  }

  void trial_end(const std::string & id, std::int32_t error_code) override
  {
    text += "end " + id + " " + std::to_string(error_code) + "\n";
  }

  std::string text;
};

}  // namespace ldos_goal_client

#endif  // COMMANDS_HPP_
