/* A trace clock for LTTng-UST that is shifted by SHIFT_NS, and since BASE_NS (CLOCK_MONOTONIC) drifts by DRIFT_PPB. */
#include <lttng/ust-clock.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t shift_ns, base_ns, drift_ppb;

static uint64_t now(void)
{
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  const int64_t ns = (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
  return (uint64_t)(ns + shift_ns + (ns - base_ns) / 1000000 * drift_ppb / 1000);
}

static uint64_t frequency(void) { return 1000000000; }

static int uuid(char *text)
{
  strcpy(text, "4b1f6dcc-9e11-4d5e-8a0c-6f0f6ba0c11a");
  return 0;
}

static const char *name(void) { return "monotonic"; }

void lttng_ust_clock_plugin_init(void)
{
  shift_ns = atoll(getenv("SHIFT_NS"));
  base_ns = atoll(getenv("BASE_NS"));
  drift_ppb = atoll(getenv("DRIFT_PPB"));
  lttng_ust_trace_clock_set_read64_cb(now);
  lttng_ust_trace_clock_set_freq_cb(frequency);
  lttng_ust_trace_clock_set_uuid_cb(uuid);
  lttng_ust_trace_clock_set_name_cb(name);
  lttng_ust_trace_clock_set_description_cb(name);
  lttng_ust_enable_trace_clock_override();
}
