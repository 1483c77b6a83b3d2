// Python bindings of the decoder; the only file that uses nanobind.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "session.hpp"
#include "tally.hpp"
#include "unreadable.hpp"

namespace nb = nanobind;

namespace ldos::ctf {

namespace {

nb::dlpack::dtype dtype_of(ElementType type) {
  switch (type) {
    case ElementType::i8: return nb::dtype<std::int8_t>();
    case ElementType::u8: return nb::dtype<std::uint8_t>();
    case ElementType::i16: return nb::dtype<std::int16_t>();
    case ElementType::u16: return nb::dtype<std::uint16_t>();
    case ElementType::i32: return nb::dtype<std::int32_t>();
    case ElementType::u32: return nb::dtype<std::uint32_t>();
    case ElementType::i64: return nb::dtype<std::int64_t>();
    case ElementType::u64: return nb::dtype<std::uint64_t>();
    case ElementType::f32: return nb::dtype<float>();
    case ElementType::f64: return nb::dtype<double>();
  }
  return nb::dtype<std::int64_t>();
}

// Hands memory to NumPy without a copy: the array keeps `owner` alive.
template <typename Owner>
nb::object to_array(void* data, std::vector<std::size_t> shape, nb::dlpack::dtype type, Owner* owner) {
  nb::capsule keeper(owner, [](void* pointer) noexcept { delete static_cast<Owner*>(pointer); });
  return nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), keeper, nullptr, type).cast();
}

nb::object take_array(Buffer buffer, std::vector<std::size_t> shape, nb::dlpack::dtype type) {
  auto* owner = new Buffer(std::move(buffer));
  return to_array(owner->data(), std::move(shape), type, owner);
}

// Names in a trace come from other programs: bytes that are not UTF-8 are shown escaped.
nb::object to_text(std::string_view text) {
  PyObject* result = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

// File names are bytes in any encoding.
nb::bytes to_bytes(const std::string& path) { return nb::bytes(path.data(), path.size()); }

std::string to_path(const nb::bytes& path) { return {path.c_str(), path.size()}; }

nb::list to_list(const Dictionary& dictionary) {
  nb::list entries;
  for (const std::string_view entry : dictionary.entries()) entries.append(to_text(entry));
  return entries;
}

nb::list to_list(const std::vector<EnumMapping>& labels) {
  nb::list result;
  for (const EnumMapping& mapping : labels) {
    result.append(nb::make_tuple(to_text(mapping.label), mapping.first, mapping.last));
  }
  return result;
}

nb::dict to_dict(Column column) {
  nb::dict result;
  result["name"] = to_text(column.name);
  result["labels"] = to_list(column.labels);
  result["valid"] = nb::none();
  if (!column.valid.empty()) result["valid"] = take_array(std::move(column.valid), {column.rows}, nb::dtype<bool>());
  if (column.shape == ColumnShape::text) result["dictionary"] = to_list(column.dictionary);
  std::vector<std::size_t> shape = {column.rows};
  if (column.is_open()) {
    shape = {column.values.bytes() / bytes_of(column.type)};
    result["offsets"] = take_array(std::move(column.offsets), {column.rows + 1}, nb::dtype<std::int64_t>());
  } else if (column.shape == ColumnShape::list) {
    shape.push_back(column.width);
  }
  result["values"] = take_array(std::move(column.values), std::move(shape), dtype_of(column.type));
  return result;
}

// One number for all rows, or an array.
template <typename T>
nb::object to_object(Origin origin, std::size_t rows) {
  if (origin.of_all) return nb::cast(*origin.of_all);
  return take_array(std::move(origin.of_each), {rows}, nb::dtype<T>());
}

nb::dict to_dict(Table table) {
  nb::dict result;
  result["name"] = to_text(table.name);
  result["timestamp_ns"] = take_array(std::move(table.timestamp_ns), {table.rows}, nb::dtype<std::int64_t>());
  result["cpu_id"] = to_object<std::int32_t>(std::move(table.cpu_id), table.rows);
  result["trace"] = to_object<std::uint32_t>(std::move(table.trace), table.rows);
  nb::list columns;
  for (Column& column : table.columns) columns.append(to_dict(std::move(column)));
  result["columns"] = columns;
  return result;
}

nb::dict to_dict(const Trace& trace) {
  nb::dict environment;
  for (const auto& [name, value] : trace.declared.environment) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      environment[to_text(name)] = to_text(*text);
    } else {
      environment[to_text(name)] = std::get<std::int64_t>(value);
    }
  }
  nb::dict result;
  result["metadata"] = to_bytes(trace.metadata_path);
  result["environment"] = environment;
  result["uuid"] = nb::none();
  if (trace.declared.uuid) {
    const Uuid& uuid = *trace.declared.uuid;
    result["uuid"] = nb::bytes(reinterpret_cast<const char*>(uuid.data()), uuid.size());
  }
  nb::list unread;
  for (const auto& [id, stream] : trace.streams) {
    for (const EventType& type : stream.types) {
      for (const std::string& field : type.layout.unread) {
        unread.append(nb::make_tuple(to_text(type.name), to_text(field)));
      }
    }
  }
  nb::dict channels;
  for (const auto& [id, stream] : trace.streams) {
    nb::list names;
    for (const EventType& type : stream.types) names.append(to_text(type.name));
    channels[nb::cast(id)] = names;
  }
  result["channels"] = channels;
  result["unread"] = unread;
  result["clock"] = to_text(trace.clock_name);
  result["clock_offset_ns"] = trace.clock_offset_ns;
  return result;
}

nb::dict to_dict(const StreamSummary& summary) {
  nb::list gaps;
  for (const Gap& gap : summary.continuity.gaps) {
    gaps.append(nb::make_tuple(gap.from_ns, gap.to_ns, gap.events, gap.packets));
  }
  nb::list corruptions;
  for (const Corruption& corruption : summary.corruptions) {
    corruptions.append(nb::make_tuple(corruption.offset, corruption.bytes, to_text(corruption.reason)));
  }
  nb::dict result;
  result["path"] = to_bytes(summary.path);
  result["trace"] = summary.trace;
  result["packets"] = summary.packets;
  result["events"] = summary.events;
  result["truncated_bytes"] = summary.truncated_bytes;
  result["missing_bytes"] = summary.missing_bytes;
  result["missing_padding"] = summary.missing_padding;
  result["foreign_packets"] = summary.foreign_packets;
  result["gaps"] = gaps;
  result["corruptions"] = corruptions;
  result["backward_steps"] = summary.backward_steps;
  result["channel"] = summary.channel;
  result["missing_before_ns"] = summary.missing_before_ns;
  result["missing_after_ns"] = summary.missing_after_ns;
  result["earlier_packets"] = summary.continuity.earlier_packets;
  result["earlier_events"] = summary.continuity.earlier_events;
  result["repeated_packets"] = summary.continuity.repeated_packets;
  return result;
}

nb::dict to_dict(const Opened& opened, Session session) {
  nb::list traces;
  for (const auto& trace : opened.traces) traces.append(to_dict(*trace));
  nb::list streams;
  for (const StreamSummary& summary : session.summaries) streams.append(to_dict(summary));
  nb::list tables;
  for (Table& table : session.tables) tables.append(to_dict(std::move(table)));
  nb::dict result;
  result["traces"] = traces;
  result["streams"] = streams;
  result["tables"] = tables;
  return result;
}

using Files = std::vector<std::pair<nb::bytes, std::vector<nb::bytes>>>;
using TimeRange = std::pair<std::int64_t, std::int64_t>;

std::vector<TraceFiles> to_files(const Files& files) {
  std::vector<TraceFiles> traces;
  for (const auto& [metadata, streams] : files) {
    traces.push_back({to_path(metadata), {}});
    for (const nb::bytes& path : streams) traces.back().streams.push_back(to_path(path));
  }
  return traces;
}

std::vector<std::tuple<std::int64_t, std::int64_t, std::uint64_t>> packet_spans(const Opened& opened) {
  std::vector<std::tuple<std::int64_t, std::int64_t, std::uint64_t>> result;
  for (const PacketSpan& span : spans_of(opened)) result.emplace_back(span.begin_ns, span.end_ns, span.bytes);
  return result;
}

Opened open_streams(const Files& files, unsigned threads, bool skip_corrupt) {
  const std::vector<TraceFiles> traces = to_files(files);
  const nb::gil_scoped_release released;
  return open_session(traces, skip_corrupt ? OnCorrupt::skip : OnCorrupt::refuse, threads);
}

nb::dict decode(const Opened& opened, std::optional<std::set<std::string>> events, std::set<std::string> fields,
                std::map<std::string, std::set<std::string>> fields_of, std::optional<TimeRange> window,
                unsigned threads) {
  Selection selection;
  selection.events = std::move(events);
  selection.fields = std::move(fields);
  selection.fields_of = std::move(fields_of);
  if (window) selection.window = {window->first, window->second};
  selection.splitting.threads = threads;
  Session session;
  {
    const nb::gil_scoped_release released;
    session = read_session(opened, selection);
  }
  nb::dict found = to_dict(opened, std::move(session));  // its texts are read from the files
  {
    const nb::gil_scoped_release released;
    for (const auto& stream : opened.streams) stream->release();
  }
  return found;
}

nb::object to_object(const FieldValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return nb::cast(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return to_text(*text);
  return nb::none();
}

// By event: the names of its fields, and rows of trace, number of events and values.
nb::dict tally(const Opened& opened, const std::set<std::string>& events, const std::vector<std::string>& by,
               unsigned threads) {
  std::map<std::string, EventTally> counted;
  {
    const nb::gil_scoped_release released;
    counted = tally_events(opened, events, by, threads);
    for (const auto& stream : opened.streams) stream->release();
  }
  nb::dict result;
  for (const auto& [name, found] : counted) {
    nb::list fields;
    for (const std::string& field : found.fields) fields.append(to_text(field));
    nb::list rows;
    for (const auto& [key, number] : found.counts) {
      nb::list values;
      for (const FieldValue& value : key.second) values.append(to_object(value));
      rows.append(nb::make_tuple(key.first, number, values));
    }
    result[to_text(name)] = nb::make_tuple(fields, rows);
  }
  return result;
}

}  // namespace

}  // namespace ldos::ctf

NB_MODULE(_decoder, module) {
  using ldos::ctf::Unreadable;
  static nb::object unreadable = nb::exception<Unreadable>(module, "Unreadable");
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Unreadable& error) {
      const nb::object offset = error.offset ? nb::cast(*error.offset) : nb::none();
      const nb::object reason = ldos::ctf::to_text(error.what());
      const nb::object arguments = nb::make_tuple(ldos::ctf::to_bytes(error.file), offset, reason);
      PyErr_SetObject(unreadable.ptr(), arguments.ptr());
    }
  });
  nb::class_<ldos::ctf::Opened>(module, "Opened")
      .def("packet_spans", &ldos::ctf::packet_spans)
      .def("decode", &ldos::ctf::decode, nb::kw_only(), nb::arg("events").none(), nb::arg("fields"),
           nb::arg("fields_of"), nb::arg("window").none(), nb::arg("threads"))
      .def("tally", &ldos::ctf::tally, nb::kw_only(), nb::arg("events"), nb::arg("by"), nb::arg("threads"));
  module.def("open_streams", &ldos::ctf::open_streams, nb::arg("files"), nb::kw_only(), nb::arg("threads"), nb::arg("skip_corrupt"));
}
