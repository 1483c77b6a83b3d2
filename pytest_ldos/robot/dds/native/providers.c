/* Code and state of both providers; everything else only declares them. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE

#include "ros2_provider.h"
#include "ldos_provider.h"
