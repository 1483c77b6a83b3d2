/* One event of every kind of field that LTTng-UST can declare, and many small ones. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER shapes

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "shapes_provider.h"

#if !defined(SHAPES_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SHAPES_PROVIDER_H

#include <arpa/inet.h>
#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_ENUM(shapes, state,
  LTTNG_UST_TP_ENUM_VALUES(
    lttng_ust_field_enum_value("unconfigured", 1)
    lttng_ust_field_enum_value("active state", 3)
    lttng_ust_field_enum_range("transition", 10, 19)
    lttng_ust_field_enum_value("negative", -5)
    lttng_ust_field_enum_auto("after it")))

LTTNG_UST_TRACEPOINT_EVENT(shapes, all,
  LTTNG_UST_TP_ARGS(int, step, const char *, text, const uint8_t *, bytes, const int16_t *, numbers, size_t, count),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(int8_t, tiny, (int8_t) -step)
    lttng_ust_field_integer(uint16_t, small, (uint16_t) (step * 3))
    lttng_ust_field_integer(int64_t, large, -((int64_t) step << 40))
    lttng_ust_field_integer_hex(uint32_t, hex, (uint32_t) step * 0x01010101u)
    lttng_ust_field_integer_network(uint32_t, network, htonl((uint32_t) step * 0x01020304u))
    lttng_ust_field_integer_network_hex(uint16_t, network_hex, htons((uint16_t) (step * 0x0102)))
    lttng_ust_field_float(float, ratio, (float) step / 4)
    lttng_ust_field_float(double, precise, (double) step / 3)
    lttng_ust_field_string(text, text)
    lttng_ust_field_array(uint8_t, three, bytes, 3)
    lttng_ust_field_array_hex(uint8_t, gid, bytes, 16)
    lttng_ust_field_array_text(char, label, (const char *) bytes, 8)
    lttng_ust_field_sequence(int16_t, numbers, numbers, size_t, count)
    lttng_ust_field_sequence_text(char, word, text, uint8_t, count + 1)
    lttng_ust_field_enum(shapes, state, int, state, step)
    lttng_ust_field_integer(uint8_t, vpid, 255)))

LTTNG_UST_TRACEPOINT_EVENT(shapes, nothing, LTTNG_UST_TP_ARGS(int, step), LTTNG_UST_TP_FIELDS())

#endif

#include <lttng/tracepoint-event.h>
