#include "library.hpp"

#include <dlfcn.h>

namespace ldos::pingpong {

namespace {

template <typename Function>
void find(void* library, const char* name, Function& function) {
  void* const found = dlsym(library, name);
  if (found == nullptr) {
    throw DdsError(std::string("it has no function ") + name);
  }
  function = reinterpret_cast<Function>(found);
}

}  // namespace

// It stays open, because its threads end only with the process.
Library::Library(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw DdsError(dlerror());
  }
  find(library, "dds_create_participant", create_participant);
  find(library, "dds_create_topic", create_topic);
  find(library, "dds_create_reader", create_reader);
  find(library, "dds_create_writer", create_writer);
  find(library, "dds_create_waitset", create_waitset);
  find(library, "dds_waitset_attach", waitset_attach);
  find(library, "dds_waitset_detach", waitset_detach);
  find(library, "dds_waitset_wait", waitset_wait);
  find(library, "dds_waitset_set_trigger", waitset_set_trigger);
  find(library, "dds_set_status_mask", set_status_mask);
  find(library, "dds_take_status", take_status);
  find(library, "dds_get_matched_subscriptions", get_matched_subscriptions);
  find(library, "dds_get_matched_publications", get_matched_publications);
  find(library, "dds_take", take);
  find(library, "dds_write_ts", write_ts);
  find(library, "dds_create_qos", create_qos);
  find(library, "dds_delete_qos", delete_qos);
  find(library, "dds_qset_reliability", qset_reliability);
  find(library, "dds_qset_history", qset_history);
  find(library, "dds_create_listener", create_listener);
  find(library, "dds_delete_listener", delete_listener);
  find(library, "dds_lset_data_available", lset_data_available);
  find(library, "dds_set_listener", set_listener);
  find(library, "dds_delete", delete_entity);
  find(library, "dds_is_shared_memory_available", is_shared_memory_available);
  find(library, "dds_free", free);
  find(library, "dds_strretcode", describe);
}

std::int32_t Library::demand(std::int32_t code, const char* what) const {
  if (code < 0) {
    throw DdsError(std::string(what) + ": " + describe(code));
  }
  return code;
}

}  // namespace ldos::pingpong
