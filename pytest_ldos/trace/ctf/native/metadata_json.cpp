// CTF 2 metadata, a sequence of JSON fragments, to the same TraceClass as TSDL.
//
// Reference: CTF2-SPEC-2.0, section 5.

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>

#include "json.hpp"
#include "metadata.hpp"

namespace ldos::ctf {

namespace {

enum class Root : std::uint8_t { packet_header, packet_context, event_header, event };

// Name of a field with a role in LTTng's CTF 1.8 traces and in the rest of the decoder.
struct Role {
  Root root;
  std::string_view role;
  std::string_view name;
};

constexpr std::array<Role, 12> kRoles = {{
    {Root::packet_header, "packet-magic-number", "magic"},
    {Root::packet_header, "metadata-stream-uuid", "uuid"},
    {Root::packet_header, "data-stream-class-id", "stream_id"},
    {Root::packet_header, "data-stream-id", "stream_instance_id"},
    {Root::packet_context, "default-clock-timestamp", "timestamp_begin"},
    {Root::packet_context, "packet-end-default-clock-timestamp", "timestamp_end"},
    {Root::packet_context, "packet-content-length", "content_size"},
    {Root::packet_context, "packet-total-length", "packet_size"},
    {Root::packet_context, "packet-sequence-number", "packet_seq_num"},
    {Root::packet_context, "discarded-event-record-counter-snapshot", "events_discarded"},
    {Root::event_header, "event-record-class-id", "id"},
    {Root::event_header, "default-clock-timestamp", "timestamp"},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOrigins = {{
    {"packet-header", "trace.packet.header."},
    {"packet-context", "stream.packet.context."},
    {"event-record-header", "stream.event.header."},
    {"event-record-common-context", "stream.event.context."},
    {"event-record-specific-context", "event.context."},
    {"event-record-payload", "event.fields."},
}};

class FieldBuilder {
 public:
  void add_alias(const Json& fragment) {
    const std::string& name = fragment.at("name").text();
    if (!aliases_.emplace(name, &fragment.at("field-class")).second) {
      fragment.fail("field class alias '" + name + "' is declared twice");
    }
  }

  // The structure in a property of a fragment; null if there is none. Timestamps are of `clock`.
  FieldPtr structure(const Json& fragment, const char* property, Root root, const std::string& clock) {
    const Json* found = fragment.find(property);
    if (found == nullptr) return nullptr;
    root_ = root;
    clock_ = clock;
    FieldPtr field = build(*found);
    if (!std::holds_alternative<StructClass>(field->shape)) found->fail("expected a structure field class");
    return field;
  }

  [[nodiscard]] ByteOrder order() const { return order_.value_or(ByteOrder::little); }

 private:
  using AliasKey = std::tuple<const Json*, Root, std::string>;

  // A field class, or the name of one. An alias is built once for each use that differs.
  FieldPtr build(const Json& json) {
    const Json& found = resolve(json);
    if (&found == &json) return make(json);
    const AliasKey key{&found, root_, clock_};
    if (const auto known = built_.find(key); known != built_.end()) return known->second;
    FieldPtr field = make(found);
    built_.emplace(key, field);
    return field;
  }

  const Json& resolve(const Json& json) const {
    const Json* found = &json;
    for (std::size_t hops = 0; std::holds_alternative<std::string>(found->value); ++hops) {
      const auto alias = aliases_.find(found->text());
      if (alias == aliases_.end() || hops > aliases_.size()) found->fail("unknown field class '" + found->text() + "'");
      found = alias->second;
    }
    return *found;
  }

  FieldPtr make(const Json& json) {
    if (++nesting_ > kDeepestType) json.fail("field classes are nested too deeply");
    FieldShape shape = shape_of(json, json.at("type").text());
    --nesting_;
    try {
      return make_field(std::move(shape));
    } catch (const TypeTooDeep&) {
      json.fail("field classes are nested too deeply");
    }
  }

  FieldShape shape_of(const Json& json, const std::string& type) {
    if (type == "fixed-length-unsigned-integer" || type == "fixed-length-signed-integer") return integer(json, type);
    if (type == "fixed-length-bit-array" || type == "fixed-length-bit-map" || type == "fixed-length-boolean") {
      return bits(json, false);
    }
    if (type == "fixed-length-floating-point-number") return floating(json);
    if (type == "variable-length-unsigned-integer") return variable(json, false);
    if (type == "variable-length-signed-integer") return variable(json, true);
    if (type == "null-terminated-string") return utf8(json), StringClass{};
    if (type == "static-length-string") return utf8(json), ArrayClass{byte(true), json.at("length").count()};
    if (type == "dynamic-length-string") return utf8(json), SequenceClass{byte(true), length_of(json)};
    if (type == "static-length-blob") return ArrayClass{byte(false), json.at("length").count()};
    if (type == "dynamic-length-blob") return SequenceClass{byte(false), length_of(json)};
    if (type == "static-length-array") return static_array(json);
    if (type == "dynamic-length-array") return SequenceClass{element(json), length_of(json), least_alignment(json)};
    if (type == "structure") return structure_shape(json);
    if (type == "optional") return optional(json);
    if (type == "variant") return variant(json);
    json.fail("unknown field class type '" + type + "'");
  }

  static FieldPtr byte(bool is_text) {
    IntegerClass field;
    field.size = field.alignment = 8;
    field.is_text = is_text;
    return make_field(field);
  }

  static void utf8(const Json& json) {
    const Json* encoding = json.find("encoding");
    if (encoding != nullptr && encoding->text() != "utf-8") {
      encoding->fail("strings of encoding '" + encoding->text() + "' are not read (utf-8 are)");
    }
  }

  static std::uint32_t alignment(const Json& json, const char* property) {
    const Json* found = json.find(property);
    if (found == nullptr) return 1;
    const std::uint64_t value = found->count();
    if (value == 0 || value > (1U << 20U) || (value & (value - 1)) != 0) found->fail("alignment is not a power of two");
    return static_cast<std::uint32_t>(value);
  }

  static std::uint32_t least_alignment(const Json& json) { return alignment(json, "minimum-alignment"); }

  ByteOrder order(const Json& json) {
    const std::string& word = json.at("byte-order").text();
    const bool is_little = word == "little-endian";
    if (!is_little && word != "big-endian") json.fail("unknown byte order '" + word + "'");
    const Json* bit_order = json.find("bit-order");
    if (bit_order != nullptr && bit_order->text() != (is_little ? "first-to-last" : "last-to-first")) {
      bit_order->fail("bits in an order against their bytes' are not read");
    }
    const ByteOrder found = is_little ? ByteOrder::little : ByteOrder::big;
    if (!order_) order_ = found;
    return found;
  }

  IntegerClass bits(const Json& json, bool is_signed) {
    IntegerClass field;
    const std::uint64_t size = json.at("length").count();
    if (size == 0 || size > 64) json.at("length").fail("fields of 1 to 64 bits are read");
    field.size = static_cast<std::uint32_t>(size);
    field.alignment = alignment(json, "alignment");
    field.order = order(json);
    field.is_signed = is_signed;
    return field;
  }

  FieldShape integer(const Json& json, const std::string& type) {
    IntegerClass field = bits(json, type == "fixed-length-signed-integer");
    if (is_timestamp(json)) field.clock = clock_;
    if (json.find("mappings") == nullptr) return field;
    return EnumClass{field, mappings(json.at("mappings"))};
  }

  FieldShape variable(const Json& json, bool is_signed) {
    VariableIntegerClass field;
    field.is_signed = is_signed;
    if (is_timestamp(json)) json.fail("timestamps of variable length are not read");
    if (const Json* labels = json.find("mappings")) field.mappings = mappings(*labels);
    return field;
  }

  bool is_timestamp(const Json& json) const {
    if (!has_role(json, "default-clock-timestamp") && !has_role(json, "packet-end-default-clock-timestamp")) return false;
    if (clock_.empty()) json.fail("a timestamp, but its data stream class has no default clock");
    return true;
  }

  static bool has_role(const Json& json, std::string_view role) {
    const Json* roles = json.find("roles");
    if (roles == nullptr) return false;
    const auto is_role = [&](const Json& each) { return each.text() == role; };
    return std::any_of(roles->array().begin(), roles->array().end(), is_role);
  }

  static std::vector<EnumMapping> ranges(const Json& json, const std::string& label) {
    std::vector<EnumMapping> result;
    for (const Json& range : json.array()) {
      if (range.array().size() != 2) range.fail("expected a range of two integers");
      const auto first = static_cast<std::int64_t>(range.array()[0].integer().bits);
      result.push_back({label, first, static_cast<std::int64_t>(range.array()[1].integer().bits)});
    }
    return result;
  }

  static std::vector<EnumMapping> mappings(const Json& json) {
    std::vector<EnumMapping> result;
    for (const auto& [label, found] : json.object()) {
      for (EnumMapping& mapping : ranges(found, label)) result.push_back(std::move(mapping));
    }
    return result;
  }

  FieldShape floating(const Json& json) {
    FloatClass field;
    const std::uint64_t size = json.at("length").count();
    if (size != 32 && size != 64) json.fail("floating point numbers of this size are not read (32 and 64 bits are)");
    field.size = static_cast<std::uint32_t>(size);
    field.alignment = alignment(json, "alignment");
    field.order = order(json);
    return field;
  }

  FieldPtr element(const Json& json) {
    FieldPtr field = build(json.at("element-field-class"));
    if (field->least_bits == 0) json.fail("an array of elements that may be empty is not read");
    return field;
  }

  FieldShape static_array(const Json& json) {
    return ArrayClass{element(json), json.at("length").count(), least_alignment(json)};
  }

  static std::string length_of(const Json& json) { return location(json.at("length-field-location")); }

  // A path of names, with its root named as in TSDL; without a root it is searched from
  // the inside out.
  static std::string location(const Json& json) {
    std::string path;
    for (const Json& step : json.at("path").array()) {
      if (std::holds_alternative<Json::Null>(step.value)) continue;
      path += (path.empty() ? "" : ".") + step.text();
    }
    if (path.empty()) json.fail("a field location without a path");
    const Json* origin = json.find("origin");
    return origin == nullptr ? path : std::string(root_of(*origin)) + path;
  }

  static std::string_view root_of(const Json& origin) {
    const auto is_named = [&](const auto& root) { return root.first == origin.text(); };
    const auto found = std::find_if(kOrigins.begin(), kOrigins.end(), is_named);
    if (found == kOrigins.end()) origin.fail("unknown origin '" + origin.text() + "'");
    return found->second;
  }

  FieldShape structure_shape(const Json& json) {
    StructClass type;
    type.alignment = least_alignment(json);
    std::unordered_set<std::string> names;
    const Json* members = json.find("member-classes");
    if (members == nullptr) return type;
    for (const Json& member : members->array()) {
      const std::string& name = member.at("name").text();
      if (!names.insert(name).second) member.fail("'" + name + "' is declared twice");
      const Json& field_class = member.at("field-class");
      type.members.push_back({name, shown_name(name, resolve(field_class)), build(field_class)});
    }
    return type;
  }

  // Outside of events, the role of a field gives its meaning, and its name does not.
  [[nodiscard]] std::string shown_name(const std::string& name, const Json& field_class) const {
    bool is_taken = false;
    for (const Role& role : kRoles) {
      if (role.root != root_) continue;
      if (has_role(field_class, role.role)) return std::string(role.name);
      is_taken = is_taken || role.name == name;
    }
    return is_taken ? name + " (no role)" : name;
  }

  FieldShape optional(const Json& json) {
    VariantClass type;
    type.tag_name = location(json.at("selector-field-location"));
    type.is_optional = true;
    type.options.push_back({"", "", build(json.at("field-class"))});
    const Json* values = json.find("selector-field-ranges");
    // Without ranges the selector is a boolean: anything but zero.
    type.ranges.push_back(values != nullptr ? ranges(*values, "") : std::vector<EnumMapping>{{"", 1, -1}});
    return type;
  }

  FieldShape variant(const Json& json) {
    VariantClass type;
    type.tag_name = location(json.at("selector-field-location"));
    for (const Json& option : json.at("options").array()) {
      const Json* name = option.find("name");
      const std::string shown = name != nullptr ? name->text() : std::to_string(type.options.size());
      type.options.push_back({shown, shown, build(option.at("field-class"))});
      type.ranges.push_back(ranges(option.at("selector-field-ranges"), shown));
    }
    return type;
  }

  std::map<std::string, const Json*> aliases_;
  std::map<AliasKey, FieldPtr> built_;
  std::optional<ByteOrder> order_;  // of the first field
  Root root_ = Root::event;
  std::string clock_;
  std::uint32_t nesting_ = 0;
};

class Fragments {
 public:
  explicit Fragments(std::string_view text) : fragments_(read_json_sequence(text)) {}

  TraceClass run() {
    if (fragments_.empty() || fragments_.front().at("type").text() != "preamble") {
      throw MetadataError(1, 1, "the first fragment is no preamble");
    }
    for (const Json& fragment : fragments_) add(fragment, fragment.at("type").text());
    trace_.order = fields_.order();
    return std::move(trace_);
  }

 private:
  void add(const Json& fragment, const std::string& type) {
    if (type == "preamble") return add_preamble(fragment);
    if (type == "field-class-alias") return fields_.add_alias(fragment);
    if (type == "trace-class") return add_trace(fragment);
    if (type == "clock-class") return add_clock(fragment);
    if (type == "data-stream-class") return add_stream(fragment);
    if (type == "event-record-class") return add_event(fragment);
    fragment.fail("unknown fragment of type '" + type + "'");
  }

  void add_preamble(const Json& fragment) {
    if (&fragment != &fragments_.front()) fragment.fail("a second preamble");
    if (fragment.at("version").count() != 2) fragment.at("version").fail("CTF major version is not 2");
    if (const Json* extensions = fragment.find("extensions"); extensions != nullptr && !extensions->object().empty()) {
      extensions->fail("extensions of '" + extensions->object().front().name + "' are not known");
    }
    if (const Json* uuid = fragment.find("uuid")) trace_.uuid = uuid_of(*uuid);
  }

  static Uuid uuid_of(const Json& json) {
    Uuid uuid{};
    if (json.array().size() != uuid.size()) json.fail("malformed uuid");
    for (std::size_t i = 0; i < uuid.size(); ++i) {
      const std::uint64_t byte = json.array()[i].count();
      if (byte > 255) json.fail("malformed uuid");
      uuid[i] = static_cast<std::uint8_t>(byte);
    }
    return uuid;
  }

  void add_trace(const Json& fragment) {
    trace_.packet_header = fields_.structure(fragment, "packet-header-field-class", Root::packet_header, "");
    const Json* environment = fragment.find("environment");
    if (environment == nullptr) return;
    for (const auto& [name, value] : environment->object()) {
      if (std::holds_alternative<std::string>(value.value)) {
        trace_.environment[name] = value.text();
      } else {
        trace_.environment[name] = value.number();
      }
    }
  }

  void add_clock(const Json& fragment) {
    ClockClass clock;
    clock.name = fragment.at("id").text();
    clock.frequency = fragment.at("frequency").count();
    if (clock.frequency == 0) fragment.fail("a clock cannot have frequency 0");
    if (const Json* offset = fragment.find("offset-from-origin")) {
      if (const Json* seconds = offset->find("seconds")) clock.offset_seconds = seconds->number();
      if (const Json* cycles = offset->find("cycles")) clock.offset_cycles = cycles->count();
    }
    const Json* origin = fragment.find("origin");
    if (origin != nullptr && std::holds_alternative<std::string>(origin->value)) {
      clock.is_absolute = origin->text() == "unix-epoch";
    }
    const std::string id = clock.name;
    if (!trace_.clocks.emplace(id, std::move(clock)).second) fragment.fail("clock '" + id + "' is declared twice");
  }

  static std::uint64_t id_of(const Json& fragment, const char* property) {
    const Json* id = fragment.find(property);
    return id == nullptr ? 0 : id->count();
  }

  void add_stream(const Json& fragment) {
    StreamClass stream;
    stream.id = id_of(fragment, "id");
    std::string clock;
    if (const Json* id = fragment.find("default-clock-class-id")) {
      clock = id->text();
      if (!trace_.clocks.contains(clock)) id->fail("clock '" + clock + "', which is not declared");
    }
    stream.packet_context = fields_.structure(fragment, "packet-context-field-class", Root::packet_context, clock);
    stream.event_header = fields_.structure(fragment, "event-record-header-field-class", Root::event_header, clock);
    stream.event_context = fields_.structure(fragment, "event-record-common-context-field-class", Root::event, clock);
    const std::uint64_t id = stream.id;
    if (!trace_.streams.emplace(id, std::move(stream)).second) {
      fragment.fail("stream " + std::to_string(id) + " is declared twice");
    }
  }

  void add_event(const Json& fragment) {
    const std::uint64_t stream_id = id_of(fragment, "data-stream-class-id");
    const auto stream = trace_.streams.find(stream_id);
    if (stream == trace_.streams.end()) {
      fragment.fail("an event names stream " + std::to_string(stream_id) + ", which is not declared");
    }
    EventClass event;
    event.id = id_of(fragment, "id");
    const Json* name = fragment.find("name");
    event.name = name != nullptr ? name->text() : "event " + std::to_string(event.id);
    event.context = fields_.structure(fragment, "specific-context-field-class", Root::event, "");
    event.payload = fields_.structure(fragment, "payload-field-class", Root::event, "");
    const std::uint64_t id = event.id;
    if (!stream->second.events.emplace(id, std::move(event)).second) {
      fragment.fail("event id " + std::to_string(id) + " is declared twice");
    }
  }

  std::vector<Json> fragments_;
  FieldBuilder fields_;
  TraceClass trace_;
};

}  // namespace

TraceClass parse_json_metadata(std::string_view text) { return Fragments(text).run(); }

}  // namespace ldos::ctf
