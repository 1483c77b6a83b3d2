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

#include "ldos_goal_client/move_report.hpp"

#include <string>

#include <nlohmann/json.hpp>

namespace ldos_goal_client
{
namespace
{

using nlohmann::ordered_json;

std::string line_of(const ordered_json & object)
{
  // Text of other programs may have any bytes; invalid UTF-8 is replaced.
  return object.dump(-1, ' ', true, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json stamps_of(const PhaseStamps & stamps)
{
  ordered_json object = ordered_json::object();
  for (const Phase phase : phases) {
    if (const auto stamp = stamps.at(phase)) {
      object[name_of(phase)] = *stamp;
    }
  }
  return object;
}

}  // namespace

std::string ready_line()
{
  return line_of({{"event", "ready"}, {"plan_only", true}});
}

std::string to_line(const MoveReport & report)
{
  ordered_json object;
  object["event"] = "result";
  object["goal_id"] = report.goal_id;
  object["error_code"] = report.error_code;
  object["message"] = report.message;
  object["stamps_ns"] = stamps_of(report.stamps);
  object["plan_duration_ns"] = report.plan ? ordered_json(report.plan->duration_ns) : nullptr;
  object["plan_points"] = report.plan ? report.plan->points : 0;
  object["planning_time_s"] = report.planning_time_s;
  const auto & error = report.pose_error;
  object["position_error_m"] = error ? ordered_json(error->position_m) : nullptr;
  object["rotation_error_rad"] = error ? ordered_json(error->rotation_rad) : nullptr;
  return line_of(object);
}

}  // namespace ldos_goal_client
