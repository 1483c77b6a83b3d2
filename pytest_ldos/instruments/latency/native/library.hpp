// The part of Cyclone DDS's C interface that is used, resolved when a library is opened: no header of it is needed to
// build, and one build measures any version from 0.10 on.
//
// Reference: dds/dds.h, dds/ddsc/dds_public_impl.h of Cyclone DDS 0.10 and 11; these declarations are the same in both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace ldos::pingpong {

using Entity = std::int32_t;
using Time = std::int64_t;

class DdsError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// dds_sample_info_t
struct SampleInfo {
  std::uint32_t sample_state;
  std::uint32_t view_state;
  std::uint32_t instance_state;
  bool valid_data;
  Time source_timestamp;
  std::uint64_t instance_handle;
  std::uint64_t publication_handle;
  std::uint32_t generations_and_ranks[5];
};

// dds_sequence_t
struct Octets {
  std::uint32_t maximum;
  std::uint32_t length;
  std::uint8_t* buffer;
  bool release;
};

// dds_key_descriptor_t
struct KeyDescriptor {
  const char* name;
  std::uint32_t offset;
  std::uint32_t index;
};

struct SerializedMetadata {
  const unsigned char* data;
  std::uint32_t size;
};

// dds_topic_descriptor_t
struct TopicDescriptor {
  std::uint32_t size;
  std::uint32_t align;
  std::uint32_t flags;
  std::uint32_t key_count;
  const char* type_name;
  const KeyDescriptor* keys;
  std::uint32_t op_count;
  const std::uint32_t* ops;
  const char* meta;
  SerializedMetadata type_information;
  SerializedMetadata type_mapping;
  std::uint32_t restrict_data_representation;
};

constexpr std::uint32_t kDataAvailable = 1U << 8U;
constexpr std::uint32_t kPublicationMatched = 1U << 11U;
constexpr std::uint32_t kSubscriptionMatched = 1U << 12U;
constexpr int kKeepLast = 0;
constexpr int kBestEffort = 0;
constexpr int kReliable = 1;
constexpr std::int32_t kTimedOut = -10;

struct Library {
  // Throws DdsError if it is no library or lacks a function.
  explicit Library(const std::string& path);

  Entity (*create_participant)(std::uint32_t domain, const void* qos, const void* listener);
  Entity (*create_topic)(Entity, const TopicDescriptor*, const char* name, const void* qos, const void* listener);
  Entity (*create_reader)(Entity, Entity topic, const void* qos, const void* listener);
  Entity (*create_writer)(Entity, Entity topic, const void* qos, const void* listener);
  Entity (*create_waitset)(Entity participant);
  std::int32_t (*waitset_attach)(Entity waitset, Entity entity, std::intptr_t argument);
  std::int32_t (*waitset_detach)(Entity waitset, Entity entity);
  std::int32_t (*waitset_wait)(Entity waitset, std::intptr_t* triggered, std::size_t count, std::int64_t timeout);
  std::int32_t (*waitset_set_trigger)(Entity waitset, bool trigger);
  std::int32_t (*set_status_mask)(Entity, std::uint32_t mask);
  std::int32_t (*take_status)(Entity, std::uint32_t* status, std::uint32_t mask);
  std::int32_t (*get_matched_subscriptions)(Entity writer, std::uint64_t*, std::size_t);
  std::int32_t (*get_matched_publications)(Entity reader, std::uint64_t*, std::size_t);
  std::int32_t (*take)(Entity, void** samples, SampleInfo*, std::size_t count, std::uint32_t most);
  std::int32_t (*write_ts)(Entity, const void* sample, Time);
  void* (*create_qos)();
  void (*delete_qos)(void*);
  void (*qset_reliability)(void*, int kind, std::int64_t longest_block);
  void (*qset_history)(void*, int kind, std::int32_t depth);
  void* (*create_listener)(void* argument);
  void (*delete_listener)(void*);
  void (*lset_data_available)(void*, void (*)(Entity, void*));
  std::int32_t (*set_listener)(Entity, const void*);
  std::int32_t (*delete_entity)(Entity);
  bool (*is_shared_memory_available)(Entity);
  void (*free)(void*);
  const char* (*describe)(std::int32_t code);

  // Returns the code; throws DdsError if it reports that `what` failed.
  std::int32_t demand(std::int32_t code, const char* what) const;
};

}  // namespace ldos::pingpong
