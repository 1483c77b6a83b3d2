#pragma once

namespace ldos::pingpong {

constexpr const char* kPingTopic = "ldos_ping";
constexpr const char* kPongTopic = "ldos_pong";

}  // namespace ldos::pingpong
