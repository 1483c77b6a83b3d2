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

#include "ldos_goal_client/move_command.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace ldos_goal_client
{
namespace
{

using nlohmann::json;

constexpr std::size_t goal_id_length = 32;

/// An invalid value of a command.
class BadValue : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

void require_keys(
  const json & object, const std::string & where, std::initializer_list<std::string_view> known)
{
  if (!object.is_object()) {
    throw BadValue(where + " must be an object");
  }
  for (const auto & [key, value] : object.items()) {
    if (std::ranges::find(known, key) == known.end()) {
      throw BadValue(where + " has an unknown key '" + key + "'");
    }
  }
}

/// The value of a key; null if it is absent.
const json & at(const json & object, const std::string & key)
{
  static const json absent;
  const auto found = object.find(key);
  return found == object.end() ? absent : *found;
}

double number_at(const json & object, const std::string & key)
{
  const json & value = at(object, key);
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    throw BadValue("'" + key + "' must be a number");
  }
  return value.get<double>();
}

double positive_at(const json & object, const std::string & key, double most)
{
  const double number = number_at(object, key);
  if (number <= 0.0 || number > most) {
    throw BadValue("'" + key + "' must lie between 0 and " + std::to_string(most));
  }
  return number;
}

std::string text_at(const json & object, const std::string & key)
{
  const json & value = at(object, key);
  if (!value.is_string() || value.get_ref<const std::string &>().empty()) {
    throw BadValue("'" + key + "' must be a text");
  }
  return value.get<std::string>();
}

/// False if the key is absent.
bool truth_at(const json & object, const std::string & key)
{
  const json & value = at(object, key);
  if (!value.is_null() && !value.is_boolean()) {
    throw BadValue("'" + key + "' must be true or false");
  }
  return value.is_boolean() && value.get<bool>();
}

template<std::size_t size>
std::array<double, size> numbers_at(const json & object, const std::string & key)
{
  const json & list = at(object, key);
  const bool fits = list.is_array() && list.size() == size &&
    std::ranges::all_of(list, [](const json & value) {return value.is_number();});
  if (!fits) {
    throw BadValue("'" + key + "' must be a list of " + std::to_string(size) + " numbers");
  }
  return list.get<std::array<double, size>>();
}

Joints joints_of(const json & object, const std::string & where)
{
  if (!object.is_object()) {
    throw BadValue("'" + where + "' must map joint names to positions");
  }
  Joints joints;
  for (const auto & [name, value] : object.items()) {
    joints[name] = number_at(object, name);
  }
  require_valid(joints);
  return joints;
}

Goal goal_of(const json & object)
{
  require_keys(object, "'goal'", {"name", "link", "pose", "joints"});
  Goal goal;
  goal.name = text_at(object, "name");
  goal.link = at(object, "link").is_null() ? default_link : text_at(object, "link");
  const json & pose = at(object, "pose");
  const json & joints = at(object, "joints");
  if (pose.is_null() == joints.is_null()) {
    throw BadValue("goal '" + goal.name + "' must have either a pose or joints");
  }
  if (pose.is_null()) {
    goal.target = joints_of(joints, "joints");
  } else {
    require_keys(pose, "'pose'", {"position", "orientation"});
    goal.target = make_pose(numbers_at<3>(pose, "position"), numbers_at<4>(pose, "orientation"));
  }
  return goal;
}

std::optional<TrialTag> trial_of(const json & object)
{
  if (object.is_null()) {
    return std::nullopt;
  }
  require_keys(object, "'trial'", {"scenario", "index"});
  const json & index = at(object, "index");
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  if (!index.is_number_unsigned() || index.get<std::uint64_t>() > most) {
    throw BadValue("'index' must be a whole number from 0 to " + std::to_string(most));
  }
  return TrialTag{text_at(object, "scenario"), index.get<std::uint32_t>()};
}

std::optional<std::uint32_t> seed_of(const json & seed)
{
  if (seed.is_null()) {
    return std::nullopt;
  }
  constexpr auto most = std::numeric_limits<std::int32_t>::max();
  const bool is_seed = seed.is_number_unsigned() && seed.get<std::uint64_t>() > 0 &&
    seed.get<std::uint64_t>() <= most;
  if (!is_seed) {
    throw BadValue("'seed' must be a whole number from 1 to " + std::to_string(most) + ", or null");
  }
  return seed.get<std::uint32_t>();
}

MoveCommand command_of(const json & object, std::string goal_id)
{
  require_keys(
    object, "the command", {"goal_id", "goal", "seed", "trial", "start", "planning_time_s",
      "velocity_scaling", "acceleration_scaling", "timeout_s", "plan_only"});
  MoveCommand command;
  command.goal_id = std::move(goal_id);
  command.goal = goal_of(at(object, "goal"));
  command.seed = seed_of(at(object, "seed"));
  command.trial = trial_of(at(object, "trial"));
  if (!at(object, "start").is_null()) {
    command.start = joints_of(at(object, "start"), "start");
  }
  command.planning_time_s = positive_at(object, "planning_time_s", 3600.0);
  command.velocity_scaling = positive_at(object, "velocity_scaling", 1.0);
  command.acceleration_scaling = positive_at(object, "acceleration_scaling", 1.0);
  command.timeout_s = positive_at(object, "timeout_s", 86400.0);
  command.plan_only = truth_at(object, "plan_only");
  return command;
}

std::string goal_id_of(const json & object)
{
  const json & value = object.is_object() ? at(object, "goal_id") : json{};
  if (!value.is_string() || !is_goal_id(value.get_ref<const std::string &>())) {
    throw BadCommand("'goal_id' must be 32 hex characters", std::nullopt);
  }
  return value.get<std::string>();
}

json json_of(const std::string & line)
{
  try {
    return json::parse(line);
  } catch (const json::parse_error & error) {
    throw BadCommand(std::string("no JSON: ") + error.what(), std::nullopt);
  }
}

}  // namespace

BadCommand::BadCommand(const std::string & reason, std::optional<std::string> goal_id)
: std::runtime_error(reason), goal_id_(std::move(goal_id)) {}

const std::optional<std::string> & BadCommand::goal_id() const noexcept
{
  return goal_id_;
}

bool is_goal_id(const std::string & text)
{
  return text.size() == goal_id_length &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
}

MoveCommand parse_command(const std::string & line)
{
  const json object = json_of(line);
  const std::string goal_id = goal_id_of(object);
  try {
    return command_of(object, goal_id);
  } catch (const BadValue & bad) {
    throw BadCommand(bad.what(), goal_id);
  } catch (const InvalidGoal & invalid) {
    throw BadCommand(invalid.what(), goal_id);
  }
}

}  // namespace ldos_goal_client
