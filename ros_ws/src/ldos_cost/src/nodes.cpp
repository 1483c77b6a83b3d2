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

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rclcpp/rclcpp.hpp>
#include <std_msgs/msg/string.hpp>

#include "ldos_cost/rung.hpp"
#include "ldos_cost/stamps.hpp"

namespace ldos_cost
{
namespace
{

using std_msgs::msg::String;

constexpr std::int64_t cancel_period_ns = 1'000'000;

/// Nodes whose publishers publish at the ticks of the node's timer.
class Nodes : public Rung
{
public:
  Nodes(const Settings & settings, const NodesKind & kind)
  : settings_(settings), kind_(kind)
  {
    message_.data.assign(static_cast<std::size_t>(settings.size_bytes), ' ');
    for (std::int64_t number = 0; number < kind.nodes; ++number) {
      add_node(number);
    }
    if (kind.publishes) {
      for (std::int64_t topic = 0; topic < settings.topics; ++topic) {
        add_topic(topic);
      }
    }
  }

  bool is_matched() override
  {
    const auto wanted = static_cast<std::size_t>(settings_.subscribers);
    return std::all_of(
      publishers_.begin(), publishers_.end(), [wanted](const auto & publisher) {
        return publisher->get_subscription_count() >= wanted;
      });
  }

  Counts exchange() override
  {
    published_ = 0;
    received_ = 0;
    ticks_left_ = settings_.ticks * kind_.nodes;
    is_done_ = false;
    for (const auto & member : members_) {
      member->ticks_left = settings_.ticks;
      member->timer->reset();
    }
    watchdog_->reset();
    spin_all();
    watchdog_->cancel();
    return {published_, received_};
  }

private:
  struct Member
  {
    rclcpp::Node::SharedPtr node;
    std::vector<rclcpp::Publisher<String>::SharedPtr> publishers;
    rclcpp::TimerBase::SharedPtr timer;
    std::int64_t ticks_left{0};
  };

  void add_node(std::int64_t number)
  {
    rclcpp::NodeOptions options;
    options.use_intra_process_comms(false);
    if (kind_.own_participants) {
      auto context = std::make_shared<rclcpp::Context>();
      rclcpp::InitOptions init_options;
      init_options.auto_initialize_logging(false);
      context->init(0, nullptr, init_options);
      options.context(context);
    }
    auto & member = *members_.emplace_back(std::make_unique<Member>());
    member.node = std::make_shared<rclcpp::Node>("cost_node_" + std::to_string(number), options);
    const std::chrono::nanoseconds period{settings_.period_ns()};
    member.timer = member.node->create_wall_timer(period, [this, &member]() {tick(member);});
    member.timer->cancel();
    if (executors_.empty() || kind_.own_participants) {
      rclcpp::ExecutorOptions executor_options;
      executor_options.context = options.context();
      executors_.push_back(
        std::make_unique<rclcpp::executors::SingleThreadedExecutor>(executor_options));
    }
    if (number == 0) {
      const std::chrono::nanoseconds limit{settings_.period_ns() * settings_.ticks + patience_ns};
      watchdog_ = member.node->create_wall_timer(limit, [this]() {end();});
      watchdog_->cancel();
    }
    executors_.back()->add_node(member.node);
  }

  void add_topic(std::int64_t topic)
  {
    const auto name = topic_name(topic);
    auto & owner = *members_[static_cast<std::size_t>(topic % kind_.nodes)];
    owner.publishers.push_back(owner.node->create_publisher<String>(name, rclcpp::QoS(10)));
    publishers_.push_back(owner.publishers.back());
    for (std::int64_t count = 0; count < settings_.subscribers; ++count) {
      auto & member = *members_[static_cast<std::size_t>(count % kind_.nodes)];
      subscriptions_.push_back(
        member.node->create_subscription<String>(
          name, rclcpp::QoS(10), [this](const String &) {
            ++received_;
            end_when_done();
          }));
    }
  }

  void tick(Member & member)
  {
    for (const auto & publisher : member.publishers) {
      publisher->publish(message_);
      ++published_;
    }
    if (--member.ticks_left == 0) {
      member.timer->cancel();
    }
    --ticks_left_;
    end_when_done();
  }

  void end_when_done()
  {
    const auto expected = kind_.publishes ? settings_.deliveries() : 0;
    if (ticks_left_ == 0 && received_ >= expected) {
      end();
    }
  }

  void end()
  {
    if (!is_done_.exchange(true)) {
      cancel_all();
    }
  }

  /// Spins the first executor on this thread, and each other on a separate one.
  ///
  /// The first one spins when it is cancelled: it has the watchdog, without whose ticks nothing
  /// is complete. Another might be cancelled before it begins, and is cancelled until it has ended.
  void spin_all()
  {
    std::atomic<std::size_t> spinning{executors_.size() - 1};
    std::vector<std::jthread> others;
    for (std::size_t place = 1; place < executors_.size(); ++place) {
      others.emplace_back(
        [this, place, &spinning]() {
          executors_[place]->spin();
          --spinning;
        });
    }
    executors_.front()->spin();
    while (spinning > 0) {
      cancel_all();
      sleep_until(monotonic_ns() + cancel_period_ns);
    }
  }

  void cancel_all()
  {
    for (const auto & executor : executors_) {
      executor->cancel();
    }
  }

  Settings settings_;
  NodesKind kind_;
  String message_;
  std::vector<std::unique_ptr<rclcpp::Executor>> executors_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<rclcpp::Publisher<String>::SharedPtr> publishers_;
  std::vector<rclcpp::Subscription<String>::SharedPtr> subscriptions_;
  rclcpp::TimerBase::SharedPtr watchdog_;
  std::atomic<std::int64_t> published_{0};
  std::atomic<std::int64_t> received_{0};
  std::atomic<std::int64_t> ticks_left_{0};
  std::atomic<bool> is_done_{false};
};

}  // namespace

std::unique_ptr<Rung> make_nodes(const Settings & settings, const NodesKind & kind)
{
  return std::make_unique<Nodes>(settings, kind);
}

}  // namespace ldos_cost
