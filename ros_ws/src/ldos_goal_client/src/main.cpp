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

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <rclcpp/rclcpp.hpp>

#include "ldos_goal_client/dialogue.hpp"
#include "ldos_goal_client/goal_client.hpp"
#include "ldos_goal_client/goal_client_parameters.hpp"
#include "ldos_goal_client/goals_file.hpp"
#include "ldos_goal_client/line_reader.hpp"
#include "ldos_goal_client/repetitions.hpp"

namespace
{

using ldos_goal_client::Dialogue;
using ldos_goal_client::ExitCode;
using ldos_goal_client::GoalClient;
using ldos_goal_client::Repetitions;
using ldos_goal_client::Session;

std::atomic<bool> is_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void note_signal([[maybe_unused]] int signal)
{
  is_interrupted = true;
}

/// The goal that is running is cancelled first. Launchers and terminals may each send the
/// same signal: a second one changes nothing.
void catch_signals()
{
  struct sigaction action {};
  action.sa_handler = note_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

ldos_goal_client::StackSettings stack_of(const goal_client::Params & params)
{
  return {
    params.action_name, params.joint_states_topic, params.server_timeout,
    {params.group, params.base_frame, params.pipeline_id, params.planner_id}};
}

std::optional<std::uint32_t> seed_of(const goal_client::Params & params)
{
  return params.seed == 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(params.seed));
}

/// @throws UnreadableGoals
std::unique_ptr<Repetitions> repetitions_of(const goal_client::Params & params)
{
  const auto goals = ldos_goal_client::read_goals_file(params.goals_file);
  const ldos_goal_client::RunSettings settings{
    params.scenario, static_cast<int>(params.repetitions), seed_of(params), params.planning_time,
    params.velocity_scaling, params.acceleration_scaling, params.timeout};
  return std::make_unique<Repetitions>(
    ldos_goal_client::find_goal_set(goals, params.goal_set), goals.home, settings, std::cout);
}

/// Runs a session to its end.
ExitCode carry_out(
  const rclcpp::Node::SharedPtr & node, const goal_client::Params & params, Session & session)
{
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(node);
  ExitCode exit_code = ldos_goal_client::exit_interrupted;
  GoalClient client(
    *node, stack_of(params), session, []() {return is_interrupted.load();},
    [&](ExitCode code) {
      exit_code = code;
      executor.cancel();
    });
  executor.spin();
  return exit_code;
}

ExitCode converse(const rclcpp::Node::SharedPtr & node, const goal_client::Params & params)
{
  Dialogue dialogue(
    std::cout, [&node](const std::string & reason) {
      RCLCPP_ERROR(node->get_logger(), "%s", reason.c_str());
    });
  ldos_goal_client::LineReader reader(
    STDIN_FILENO, [&dialogue](std::string line) {dialogue.hear(std::move(line));},
    [&dialogue]() {dialogue.close();});
  return carry_out(node, params, dialogue);
}

ExitCode run(const rclcpp::Node::SharedPtr & node)
{
  goal_client::ParamListener parameters(node);
  const auto params = parameters.get_params();
  if (params.interactive) {
    return converse(node, params);
  }
  const auto repetitions = repetitions_of(params);
  return carry_out(node, params, *repetitions);
}

ExitCode run_guarded()
{
  const auto logger = rclcpp::get_logger("ldos_goal_client");
  try {
    return run(std::make_shared<rclcpp::Node>("ldos_goal_client"));
  } catch (const ldos_goal_client::UnreadableGoals & unreadable) {
    RCLCPP_ERROR(logger, "%s", unreadable.what());
  } catch (const rclcpp::exceptions::InvalidParameterValueException & invalid) {
    RCLCPP_ERROR(logger, "%s", invalid.what());
  } catch (const rclcpp::exceptions::InvalidParameterTypeException & invalid) {
    RCLCPP_ERROR(logger, "%s", invalid.what());
  }
  return ldos_goal_client::exit_bad_settings;
}

}  // namespace

int main(int argc, char * argv[])
{
  try {
    // The context must outlive a signal, so that the running goal can be cancelled.
    rclcpp::init(argc, argv, rclcpp::InitOptions(), rclcpp::SignalHandlerOptions::None);
  } catch (const std::exception & exception) {
    std::cerr << "ldos_goal_client: " << exception.what() << '\n';
    return ldos_goal_client::exit_bad_settings;
  }
  catch_signals();
  const ExitCode exit_code = run_guarded();
  rclcpp::shutdown();
  return exit_code;
}
