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
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include <rclcpp/rclcpp.hpp>

#include "ldos_goal_client/dialogue.hpp"
#include "ldos_goal_client/goal_client.hpp"
#include "ldos_goal_client/goal_client_parameters.hpp"
#include "ldos_goal_client/line_reader.hpp"

namespace
{

using ldos_goal_client::Dialogue;
using ldos_goal_client::ExitCode;
using ldos_goal_client::GoalClient;

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
    {params.group, params.base_frame}};
}

/// Carries out the commands on standard input until it ends.
ExitCode run(const rclcpp::Node::SharedPtr & node)
{
  goal_client::ParamListener parameters(node);
  const auto params = parameters.get_params();
  Dialogue dialogue(
    std::cout, [&node](const std::string & reason) {
      RCLCPP_ERROR(node->get_logger(), "%s", reason.c_str());
    });
  ldos_goal_client::LineReader reader(
    STDIN_FILENO, [&dialogue](std::string line) {dialogue.hear(std::move(line));},
    [&dialogue]() {dialogue.close();});
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(node);
  ExitCode exit_code = ldos_goal_client::exit_interrupted;
  GoalClient client(
    *node, stack_of(params), dialogue, []() {return is_interrupted.load();},
    [&](ExitCode code) {
      exit_code = code;
      executor.cancel();
    });
  executor.spin();
  return exit_code;
}

ExitCode run_guarded()
{
  const auto logger = rclcpp::get_logger("ldos_goal_client");
  try {
    return run(std::make_shared<rclcpp::Node>("ldos_goal_client"));
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
