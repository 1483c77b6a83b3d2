// TSDL tokens to a TraceClass: recursive descent, one function per production.

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "lexer.hpp"
#include "metadata.hpp"

namespace ldos::ctf {

namespace {

constexpr int kDeepestNesting = 64;

std::string shown_name(const std::string& raw) {
  return raw.size() > 1 && raw.front() == '_' ? raw.substr(1) : raw;
}

// A value on the right of '=': a number, a string, or a (dotted) name.
struct Value {
  enum class Kind : std::uint8_t { number, text, name } kind = Kind::name;
  std::string text;
  bool is_negative = false;
  std::uint64_t magnitude = 0;
};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)), scopes_(1) {
    trace_.order = native_order();
  }

  TraceClass run() {
    while (!at_end()) top_level();
    if (!seen_trace_) fail("no trace block");
    place_events();
    check_clocks();
    return std::move(trace_);
  }

 private:
  using Scope = std::unordered_map<std::string, FieldPtr>;
  using OnValue = std::function<void(const std::string&, const Value&)>;
  using OnType = std::function<void(const std::string&, FieldPtr)>;

  struct Names {
    std::unordered_set<std::string> raw;
    std::unordered_set<std::string> shown;
  };

  // An event whose stream may be declared after it, or not at all.
  struct UnplacedEvent {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::optional<std::uint64_t> stream_id;
    bool has_id = false;
    EventClass event;

    [[noreturn]] void fail(const std::string& reason) const {
      throw MetadataError(line, column, "event '" + event.name + "' " + reason);
    }
  };

  // A field that is declared as the value of a clock.
  struct ClockUse {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::string clock;
  };

  // --- tokens -----------------------------------------------------------------------

  [[nodiscard]] const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
  }
  [[nodiscard]] bool at_end() const { return peek().kind == Token::Kind::end; }
  const Token& take() {
    const Token& token = peek();
    if (position_ < tokens_.size() - 1) ++position_;
    return token;
  }
  bool accept(std::string_view value) {
    if (!peek().is(value)) return false;
    take();
    return true;
  }
  [[noreturn]] void fail(const std::string& reason) const {
    throw MetadataError(peek().line, peek().column, reason);
  }
  void expect(std::string_view value) {
    if (!accept(value)) fail("expected '" + std::string(value) + "'" + found());
  }
  [[nodiscard]] std::string found() const {
    switch (peek().kind) {
      case Token::Kind::end: return ", found the end of the metadata";
      case Token::Kind::number: return ", found a number";
      case Token::Kind::text: return ", found a string";
      default: return ", found '" + peek().text + "'";
    }
  }
  std::string identifier() {
    if (peek().kind != Token::Kind::identifier) fail("expected a name" + found());
    return take().text;
  }
  std::uint64_t unsigned_number() {
    if (peek().kind != Token::Kind::number) fail("expected a number" + found());
    return take().number;
  }
  // The bits of a number that may be negative.
  std::int64_t signed_number() {
    const Value value = number();
    return static_cast<std::int64_t>(value.is_negative ? 0 - value.magnitude : value.magnitude);
  }
  Value number() {
    Value result;
    result.kind = Value::Kind::number;
    result.is_negative = accept("-");
    if (!result.is_negative) accept("+");
    result.magnitude = unsigned_number();
    return result;
  }
  std::string dotted_name() {
    std::string name = identifier();
    while (accept(".")) name += '.' + identifier();
    return name;
  }

  // The byte order must be known before the first integer is, but is declared later.
  [[nodiscard]] ByteOrder native_order() const {
    const auto is = [](std::string_view word) { return [word](const Token& token) { return token.is(word); }; };
    const auto trace = std::find_if(tokens_.begin(), tokens_.end(), is("trace"));
    const auto name = std::find_if(trace, tokens_.end(), is("byte_order"));
    if (std::distance(name, tokens_.end()) < 3) return ByteOrder::little;
    return order_of((name + 2)->text).value_or(ByteOrder::little);
  }
  static std::optional<ByteOrder> order_of(const std::string& word) {
    if (word == "le") return ByteOrder::little;
    if (word == "be" || word == "network") return ByteOrder::big;
    return std::nullopt;
  }

  // --- blocks -----------------------------------------------------------------------

  void top_level() {
    if (accept(";")) return;
    if (accept("trace")) return trace_block();
    if (accept("env")) return environment_block();
    if (accept("clock")) return clock_block();
    if (accept("stream")) return stream_block();
    if (accept("event")) return event_block();
    if (accept("callsite")) return skip_block();
    if (declaration()) return;
    fail("unknown block" + found());
  }

  // Entries of a `{ … }` block: `name = value;`, `name := type;`, and declarations.
  void entries(const OnValue& on_value, const OnType& on_type) {
    expect("{");
    scopes_.emplace_back();
    while (!accept("}")) {
      if (accept(";") || declaration()) continue;
      const std::string name = dotted_name();
      if (accept("=")) {
        on_value(name, value());
      } else if (accept(":=")) {
        on_type(name, type_specifier());
      } else {
        fail("expected '=' or ':=' after '" + name + "'" + found());
      }
      expect(";");
    }
    scopes_.pop_back();
    accept(";");
  }

  Value value() {
    Value result;
    if (peek().kind == Token::Kind::text) {
      result.kind = Value::Kind::text;
      result.text = take().text;
    } else if (peek().kind == Token::Kind::number || peek().is("-") || peek().is("+")) {
      return number();
    } else {
      result.text = dotted_name();
    }
    return result;
  }

  // A number that is not negative.
  std::uint64_t natural(const std::string& name, const Value& value) const {
    if (value.kind != Value::Kind::number || value.is_negative) fail("'" + name + "' is not a number from 0 on");
    return value.magnitude;
  }

  // A number of 64 bits with a sign.
  std::int64_t whole(const std::string& name, const Value& value) const {
    constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
    if (value.kind != Value::Kind::number) fail("'" + name + "' is not a number");
    if (value.magnitude > kLargest + (value.is_negative ? 1 : 0)) fail("'" + name + "' does not fit 64 bits");
    return static_cast<std::int64_t>(value.is_negative ? 0 - value.magnitude : value.magnitude);
  }

  FieldPtr make(FieldShape shape) const {
    try {
      return make_field(std::move(shape));
    } catch (const TypeTooDeep&) {
      fail("types are nested too deeply");
    }
  }

  void no_types(const std::string& name, const FieldPtr&) { fail("'" + name + "' cannot hold a type here"); }

  void trace_block() {
    if (seen_trace_) fail("a second trace block");
    seen_trace_ = true;
    std::set<std::string> given;
    entries(
        [&](const std::string& name, const Value& value) {
          given.insert(name);
          if (name == "major" && natural(name, value) != 1) fail("CTF major version is not 1");
          if (name == "minor" && natural(name, value) != 8) fail("CTF minor version is not 8");
          if (name == "uuid") trace_.uuid = parse_uuid(value.text);
          if (name == "byte_order" && !order_of(value.text)) fail("unknown byte order '" + value.text + "'");
        },
        [&](const std::string& name, FieldPtr type) {
          if (name == "packet.header") trace_.packet_header = std::move(type);
        });
    for (const char* name : {"major", "minor", "byte_order"}) {
      if (!given.contains(name)) fail(std::string("trace block without ") + name);
    }
  }

  Uuid parse_uuid(const std::string& text) const {
    std::string digits;
    for (const char c : text) {
      if (c != '-') digits += c;
    }
    Uuid uuid{};
    const auto hex = [&](char c) -> int {
      if (c >= '0' && c <= '9') return c - '0';
      if (c >= 'a' && c <= 'f') return c - 'a' + 10;
      if (c >= 'A' && c <= 'F') return c - 'A' + 10;
      fail("malformed uuid");
    };
    if (digits.size() != 32) fail("malformed uuid");
    for (std::size_t i = 0; i < 16; ++i) {
      uuid[i] = static_cast<std::uint8_t>(hex(digits[2 * i]) * 16 + hex(digits[2 * i + 1]));
    }
    return uuid;
  }

  void environment_block() {
    entries(
        [&](const std::string& name, const Value& value) {
          if (value.kind == Value::Kind::number) {
            trace_.environment[name] = whole(name, value);
          } else {
            trace_.environment[name] = value.text;
          }
        },
        [&](const std::string& name, const FieldPtr& type) { no_types(name, type); });
  }

  void clock_block() {
    ClockClass clock;
    entries(
        [&](const std::string& name, const Value& value) {
          if (name == "name") clock.name = value.text;
          if (name == "uuid") clock.uuid = value.text;
          if (name == "freq") clock.frequency = natural(name, value);
          if (clock.frequency == 0) fail("a clock cannot have frequency 0");
          if (name == "offset_s") clock.offset_seconds = whole(name, value);
          if (name == "offset" && value.kind != Value::Kind::number) fail("'offset' is not a number");
          if (name == "offset") clock.offset_is_negative = value.is_negative;
          if (name == "offset") clock.offset_cycles = value.magnitude;
          if (name == "absolute") clock.is_absolute = is_true(value);
        },
        [&](const std::string& name, const FieldPtr& type) { no_types(name, type); });
    if (clock.name.empty()) fail("clock without a name");
    const std::string name = clock.name;
    trace_.clocks[name] = std::move(clock);
  }

  void stream_block() {
    StreamClass stream;
    bool has_id = false;
    entries(
        [&](const std::string& name, const Value& value) {
          if (name != "id") return;
          has_id = true;
          stream.id = natural(name, value);
        },
        [&](const std::string& name, FieldPtr type) {
          if (name == "event.header") stream.event_header = std::move(type);
          if (name == "event.context") stream.event_context = std::move(type);
          if (name == "packet.context") stream.packet_context = std::move(type);
        });
    if (!has_id && !trace_.streams.empty()) fail("stream without an id, but not the only one");
    if (trace_.streams.contains(stream.id)) fail("stream " + std::to_string(stream.id) + " is declared twice");
    trace_.streams[stream.id] = std::move(stream);
  }

  void event_block() {
    UnplacedEvent unplaced{peek().line, peek().column, std::nullopt, false, {}};
    EventClass& event = unplaced.event;
    entries(
        [&](const std::string& name, const Value& value) {
          if (name == "name") event.name = value.text;
          if (name == "stream_id") unplaced.stream_id = natural(name, value);
          if (name != "id") return;
          unplaced.has_id = true;
          event.id = natural(name, value);
        },
        [&](const std::string& name, FieldPtr type) {
          if (name == "context") event.context = std::move(type);
          if (name == "fields") event.payload = std::move(type);
        });
    if (event.name.empty()) throw MetadataError(unplaced.line, unplaced.column, "event without a name");
    unplaced_events_.push_back(std::move(unplaced));
  }

  // LTTng may declare an event before its stream.
  void place_events() {
    for (UnplacedEvent& unplaced : unplaced_events_) {
      StreamClass& stream = stream_of(unplaced);
      const auto id = unplaced.event.id;
      if (!unplaced.has_id && !stream.events.empty()) unplaced.fail("has no id, but is not the only one of its stream");
      if (stream.events.contains(id)) {
        throw MetadataError(unplaced.line, unplaced.column, "event id " + std::to_string(id) + " is declared twice");
      }
      stream.events[id] = std::move(unplaced.event);
    }
  }

  // A trace of one stream need not number it; one without a stream block has stream 0.
  StreamClass& stream_of(const UnplacedEvent& unplaced) {
    if (!unplaced.stream_id) {
      if (trace_.streams.size() > 1) unplaced.fail("does not say in which stream it lies, and there are several");
      return trace_.streams.empty() ? trace_.streams[0] : trace_.streams.begin()->second;
    }
    const auto stream = trace_.streams.find(*unplaced.stream_id);
    if (stream != trace_.streams.end()) return stream->second;
    unplaced.fail("names stream " + std::to_string(*unplaced.stream_id) + ", which is not declared");
  }

  void check_clocks() const {
    for (const auto& [line, column, clock] : clock_uses_) {
      if (trace_.clocks.contains(clock)) continue;
      throw MetadataError(line, column, "a field is the value of clock '" + clock + "', which is not declared");
    }
  }

  void skip_block() {
    expect("{");
    for (int depth = 1; depth > 0;) {
      if (at_end()) fail("block without end");
      if (peek().is("{")) ++depth;
      if (peek().is("}")) --depth;
      take();
    }
    accept(";");
  }

  // --- types ------------------------------------------------------------------------

  // `typealias`, `typedef`, and named struct, enum and variant declarations.
  bool declaration() {
    if (accept("typealias")) {
      FieldPtr type = type_specifier();
      expect(":=");
      declare(alias_name(), std::move(type));
      expect(";");
      return true;
    }
    if (accept("typedef")) {
      auto [type, name] = declarator(type_specifier_before_name());
      declare(name, std::move(type));
      expect(";");
      return true;
    }
    if ((peek().is("struct") || peek().is("enum") || peek().is("variant")) &&
        peek(1).kind == Token::Kind::identifier) {
      type_specifier();
      expect(";");
      return true;
    }
    return false;
  }

  void declare(const std::string& name, FieldPtr type) { scopes_.back()[name] = std::move(type); }

  FieldPtr find(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    }
    fail("unknown type '" + name + "'");
  }

  // A type that is named in place of its body.
  FieldPtr find_named(const std::string& kind, const std::string& name) {
    if (name.empty()) expect("{");
    return find(kind + ' ' + name);
  }

  std::string alias_name() {
    std::string name = identifier();
    while (peek().kind == Token::Kind::identifier) name += ' ' + take().text;
    return name + pointers();
  }

  // Pointers are part of a type's name, with their constness.
  std::string pointers() {
    std::string stars;
    while (accept("*")) stars += accept("const") ? " * const" : " *";
    return stars;
  }

  // A type that is followed by punctuation, so that every word belongs to it.
  FieldPtr type_specifier() {
    if (FieldPtr type = keyword_type()) return type;
    return find(alias_name());
  }

  // A type in front of a declarator: the last word is the declared name.
  FieldPtr type_specifier_before_name() {
    if (FieldPtr type = keyword_type()) return type;
    std::string name = identifier();
    const auto goes_on = [&] { return peek(1).kind == Token::Kind::identifier || peek(1).is("*"); };
    while (peek().kind == Token::Kind::identifier && goes_on()) name += ' ' + take().text;
    return find(name + pointers());
  }

  FieldPtr keyword_type() {
    if (++depth_ > kDeepestNesting) fail("types are nested too deeply");
    FieldPtr type;
    accept("const");
    if (peek().is("integer") && peek(1).is("{")) {
      take();
      type = make(integer_body());
    } else if (peek().is("floating_point") && peek(1).is("{")) {
      take();
      type = make(float_body());
    } else if (accept("string")) {
      if (peek().is("{")) entries([](const std::string&, const Value&) {}, [](const std::string&, const FieldPtr&) {});
      type = make(StringClass{});
    } else if (accept("struct")) {
      type = struct_type();
    } else if (accept("enum")) {
      type = enum_type();
    } else if (accept("variant")) {
      type = variant_type();
    }
    --depth_;
    return type;
  }

  static bool is_true(const Value& value) {
    return value.magnitude != 0 || value.text == "true" || value.text == "TRUE";
  }

  std::uint32_t small(const Value& value, std::uint32_t least, std::uint32_t most, const char* what) const {
    const bool is_natural = value.kind == Value::Kind::number && !value.is_negative;
    if (!is_natural || value.magnitude < least || value.magnitude > most) {
      fail(std::string(what) + " is not a number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return static_cast<std::uint32_t>(value.magnitude);
  }

  std::uint32_t alignment(const Value& value) const {
    const std::uint32_t bits = small(value, 1, 1 << 20, "alignment");
    if ((bits & (bits - 1)) != 0) fail("alignment is not a power of two");
    return bits;
  }

  ByteOrder order(const Value& value) const {
    if (value.text == "native") return trace_.order;
    if (const auto known = order_of(value.text)) return *known;
    fail("unknown byte order '" + value.text + "'");
  }

  IntegerClass integer_body() {
    IntegerClass field;
    field.order = trace_.order;
    std::optional<std::uint32_t> align;
    entries(
        [&](const std::string& name, const Value& value) {
          if (name == "size") field.size = small(value, 1, 64, "integer size");
          if (name == "align") align = alignment(value);
          if (name == "signed") field.is_signed = is_true(value);
          if (name == "byte_order") field.order = order(value);
          if (name == "encoding") field.is_text = value.text == "UTF8" || value.text == "ASCII";
          if (name == "map") field.clock = mapped_clock(value.text);
        },
        [&](const std::string& name, const FieldPtr& type) { no_types(name, type); });
    if (field.size == 0) fail("integer without a size");
    field.alignment = align.value_or(field.size % 8 == 0 ? 8 : 1);
    if (field.size != 8) field.is_text = false;
    return field;
  }

  std::string mapped_clock(const std::string& reference) {
    std::string clock = clock_name(reference);
    clock_uses_.push_back({peek().line, peek().column, clock});
    return clock;
  }

  std::string clock_name(const std::string& reference) const {
    constexpr std::string_view kBefore = "clock.";
    constexpr std::string_view kAfter = ".value";
    if (!reference.starts_with(kBefore) || !reference.ends_with(kAfter) ||
        reference.size() <= kBefore.size() + kAfter.size()) {
      fail("'" + reference + "' is not the value of a clock");
    }
    return reference.substr(kBefore.size(), reference.size() - kBefore.size() - kAfter.size());
  }

  FloatClass float_body() {
    FloatClass field;
    field.order = trace_.order;
    std::uint32_t exponent = 0;
    std::uint32_t mantissa = 0;
    std::optional<std::uint32_t> align;
    entries(
        [&](const std::string& name, const Value& value) {
          if (name == "exp_dig") exponent = small(value, 1, 64, "exponent size");
          if (name == "mant_dig") mantissa = small(value, 1, 128, "mantissa size");
          if (name == "align") align = alignment(value);
          if (name == "byte_order") field.order = order(value);
        },
        [&](const std::string& name, const FieldPtr& type) { no_types(name, type); });
    field.size = exponent + mantissa;
    const bool known = (exponent == 8 && mantissa == 24) || (exponent == 11 && mantissa == 53);
    if (!known) fail("floating point numbers of this size are not read (32 and 64 bits are)");
    field.alignment = align.value_or(8);
    return field;
  }

  FieldPtr struct_type() {
    const std::string name = optional_name();
    if (!peek().is("{")) return find_named("struct", name);
    StructClass type;
    type.members = members();
    if (accept("align")) {
      expect("(");
      type.alignment = alignment(number());
      expect(")");
    }
    return named("struct", name, make(std::move(type)));
  }

  std::string optional_name() { return peek().kind == Token::Kind::identifier ? take().text : std::string(); }

  FieldPtr named(const std::string& kind, const std::string& name, FieldPtr type) {
    if (!name.empty()) declare(kind + ' ' + name, type);
    return type;
  }

  std::vector<Member> members() {
    std::vector<Member> result;
    Names names;
    expect("{");
    scopes_.emplace_back();
    while (!accept("}")) {
      if (accept(";")) continue;
      if (peek().is("typealias") || peek().is("typedef")) {
        declaration();
        continue;
      }
      const FieldPtr base = type_specifier_before_name();
      do {
        add_member(result, names, declarator(base));
      } while (accept(","));
      expect(";");
    }
    scopes_.pop_back();
    return result;
  }

  // Raw names are distinct; if two would be shown alike, the later one keeps its underscore.
  void add_member(std::vector<Member>& members, Names& names, std::pair<FieldPtr, std::string> declared) const {
    auto& [type, raw] = declared;
    if (!names.raw.insert(raw).second) fail("'" + raw + "' is declared twice");
    std::string shown = shown_name(raw);
    if (!names.shown.insert(shown).second) shown = raw;
    names.shown.insert(shown);
    members.push_back({raw, std::move(shown), std::move(type)});
  }

  std::pair<FieldPtr, std::string> declarator(FieldPtr type) {
    std::string name = identifier();
    while (accept("[")) {
      type = peek().kind == Token::Kind::number ? array_of(std::move(type)) : sequence_of(std::move(type));
      expect("]");
    }
    return {std::move(type), std::move(name)};
  }

  FieldPtr array_of(FieldPtr element) {
    check_element(*element);
    return make(ArrayClass{std::move(element), unsigned_number()});
  }

  FieldPtr sequence_of(FieldPtr element) {
    check_element(*element);
    return make(SequenceClass{std::move(element), dotted_name()});
  }

  void check_element(const FieldClass& element) const {
    if (element.least_bits == 0) fail("an array of elements that may be empty is not read");
  }

  FieldPtr enum_type() {
    const std::string name = optional_name();
    FieldPtr container;
    if (accept(":")) {
      container = type_specifier();
    } else if (!peek().is("{")) {
      return find_named("enum", name);
    } else {
      container = find("int");
    }
    const auto* integer = std::get_if<IntegerClass>(&container->shape);
    if (integer == nullptr) fail("an enumeration's container must be an integer");
    EnumClass type;
    type.container = *integer;
    type.mappings = mappings();
    return named("enum", name, make(std::move(type)));
  }

  std::vector<EnumMapping> mappings() {
    std::vector<EnumMapping> result;
    std::int64_t next = 0;
    expect("{");
    while (!accept("}")) {
      EnumMapping mapping;
      mapping.label = peek().kind == Token::Kind::text ? take().text : identifier();
      mapping.first = mapping.last = next;
      if (accept("=")) {
        mapping.first = mapping.last = signed_number();
        if (accept("...")) mapping.last = signed_number();
      }
      next = static_cast<std::int64_t>(static_cast<std::uint64_t>(mapping.last) + 1);
      result.push_back(std::move(mapping));
      if (!accept(",") && !peek().is("}")) fail("expected ',' or '}'" + found());
    }
    return result;
  }

  FieldPtr variant_type() {
    const std::string name = optional_name();
    VariantClass type;
    if (accept("<")) {
      type.tag_name = dotted_name();
      expect(">");
    }
    if (peek().is("{")) {
      type.options = members();
    } else {
      const FieldPtr known = find_named("variant", name);
      const auto* variant = std::get_if<VariantClass>(&known->shape);
      if (variant == nullptr) fail("'" + name + "' is not a variant");
      type.options = variant->options;
    }
    return named("variant", name, make(std::move(type)));
  }

  std::vector<Token> tokens_;
  std::size_t position_ = 0;
  std::vector<Scope> scopes_;
  TraceClass trace_;
  std::vector<UnplacedEvent> unplaced_events_;
  std::vector<ClockUse> clock_uses_;
  bool seen_trace_ = false;
  int depth_ = 0;
};

}  // namespace

TraceClass parse_metadata(std::string_view text) { return Parser(lex(text)).run(); }

}  // namespace ldos::ctf
