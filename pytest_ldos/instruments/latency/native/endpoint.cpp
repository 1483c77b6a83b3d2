#include "endpoint.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

namespace ldos::pingpong {

namespace {

constexpr Time kLongestBlock = 1'000'000'000;

std::unique_ptr<void, void (*)(void*)> make_qos(const Participant& participant) {
  const Library& dds = participant.dds;
  std::unique_ptr<void, void (*)(void*)> qos(dds.create_qos(), dds.delete_qos);
  dds.qset_reliability(qos.get(), participant.reliable ? kReliable : kBestEffort, kLongestBlock);
  dds.qset_history(qos.get(), kKeepLast, 1);
  return qos;
}

}  // namespace

Time now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Participant::Participant(const std::string& library, std::uint32_t domain, bool is_reliable)
    : dds(library),
      entity(dds.demand(dds.create_participant(domain, nullptr, nullptr), "no participant")),
      reliable(is_reliable) {}

Participant::~Participant() { dds.delete_entity(entity); }

Endpoint::Endpoint(const Participant& participant, const char* writes, const char* reads) : dds(participant.dds) {
  const auto qos = make_qos(participant);
  const auto topic = [&](const char* name) {
    return dds.demand(dds.create_topic(participant.entity, &describe_message(), name, nullptr, nullptr), "no topic");
  };
  writer = dds.demand(dds.create_writer(participant.entity, topic(writes), qos.get(), nullptr), "no writer");
  reader = dds.demand(dds.create_reader(participant.entity, topic(reads), qos.get(), nullptr), "no reader");
  waitset_ = dds.demand(dds.create_waitset(participant.entity), "no waitset");
  dds.demand(dds.set_status_mask(writer, kPublicationMatched), "no status of the writer");
  dds.demand(dds.set_status_mask(reader, kSubscriptionMatched), "no status of the reader");
  dds.demand(dds.waitset_attach(waitset_, writer, 0), "writer not attached");
  dds.demand(dds.waitset_attach(waitset_, reader, 0), "reader not attached");
  dds.demand(dds.waitset_attach(waitset_, waitset_, 0), "waitset not attached");
}

Endpoint::~Endpoint() {
  for (const Entity each : {waitset_, reader, writer}) {
    dds.delete_entity(each);
  }
}

bool Endpoint::is_matched() const {
  return dds.get_matched_subscriptions(writer, nullptr, 0) > 0 && dds.get_matched_publications(reader, nullptr, 0) > 0;
}

bool Endpoint::await_match(Time patience) const {
  const Time deadline = now() + patience;
  while (!is_matched()) {
    const Time left = deadline - now();
    if (left <= 0) {
      return false;
    }
    wait(left);
    std::uint32_t status = 0;
    dds.take_status(writer, &status, kPublicationMatched);
    dds.take_status(reader, &status, kSubscriptionMatched);
  }
  return true;
}

void Endpoint::watch_data() const {
  dds.demand(dds.waitset_detach(waitset_, writer), "writer not detached");
  dds.demand(dds.set_status_mask(reader, kDataAvailable), "no status of the reader");
}

bool Endpoint::take(Message& message, SampleInfo& info) const {
  void* places[] = {&message};
  while (dds.demand(dds.take(reader, places, &info, 1, 1), "no message") > 0) {
    if (info.valid_data) {
      return true;
    }
  }
  return false;
}

void Endpoint::wait(Time timeout) const {
  dds.demand(dds.waitset_wait(waitset_, nullptr, 0, std::max<Time>(timeout, 0)), "no wait");
}

void Endpoint::wake() const { dds.waitset_set_trigger(waitset_, true); }

Listening::Listening(const Endpoint& endpoint, void (*on_data)(Entity, void*), void* argument) : endpoint_(endpoint) {
  const Library& dds = endpoint.dds;
  const std::unique_ptr<void, void (*)(void*)> listener(dds.create_listener(argument), dds.delete_listener);
  dds.lset_data_available(listener.get(), on_data);
  dds.demand(dds.set_listener(endpoint.reader, listener.get()), "no listener");
}

}  // namespace ldos::pingpong
