#include "json.hpp"

#include <charconv>
#include <limits>
#include <unordered_set>
#include <utility>

namespace ldos::ctf {

namespace {

constexpr int kDeepest = 128;
constexpr char kRecordSeparator = '\x1E';

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<Json> run() {
    std::vector<Json> values;
    while (skip_blanks(true), position_ < text_.size()) values.push_back(value());
    return values;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { throw MetadataError(line_, column_, reason); }

  [[nodiscard]] bool at_end() const { return position_ >= text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[position_]; }

  char take() {
    if (at_end()) fail("the metadata ends inside a JSON value");
    const char c = text_[position_++];
    column_ = c == '\n' ? 1 : column_ + 1;
    if (c == '\n') ++line_;
    return c;
  }

  void expect(char wanted) {
    if (at_end()) take();
    if (peek() != wanted) fail(std::string("expected '") + wanted + "'");
    take();
  }

  void skip_blanks(bool with_separators) {
    while (!at_end()) {
      const char c = peek();
      if (c != ' ' && c != '\t' && c != '\n' && c != '\r' && !(with_separators && c == kRecordSeparator)) return;
      take();
    }
  }

  Json value() {
    if (++depth_ > kDeepest) fail("JSON values are nested too deeply");
    Json result;
    result.line = line_;
    result.column = column_;
    switch (peek()) {
      case '{': result.value = object(); break;
      case '[': result.value = array(); break;
      case '"': result.value = text(); break;
      case 't': word("true"), result.value = true; break;
      case 'f': word("false"), result.value = false; break;
      case 'n': word("null"), result.value = Json::Null{}; break;
      default: number(result); break;
    }
    --depth_;
    return result;
  }

  void word(std::string_view wanted) {
    for (const char c : wanted) expect(c);
  }

  Json::Object object() {
    Json::Object members;
    std::unordered_set<std::string> names;
    expect('{');
    skip_blanks(false);
    while (peek() != '}') {
      if (!members.empty()) expect(','), skip_blanks(false);
      std::string name = text();
      if (!names.insert(name).second) fail("property '" + name + "' is there twice");
      skip_blanks(false);
      expect(':');
      skip_blanks(false);
      members.push_back({std::move(name), value()});
      skip_blanks(false);
    }
    take();
    return members;
  }

  Json::Array array() {
    Json::Array elements;
    expect('[');
    skip_blanks(false);
    while (peek() != ']') {
      if (!elements.empty()) expect(','), skip_blanks(false);
      elements.push_back(value());
      skip_blanks(false);
    }
    take();
    return elements;
  }

  std::string text() {
    std::string result;
    expect('"');
    while (peek() != '"') {
      const char c = take();
      if (static_cast<unsigned char>(c) < 0x20) fail("control character in a JSON string");
      if (c == '\\') {
        escaped(result);
      } else {
        result += c;
      }
    }
    take();
    return result;
  }

  void escaped(std::string& result) {
    const char c = take();
    switch (c) {
      case '"':
      case '\\':
      case '/': result += c; break;
      case 'b': result += '\b'; break;
      case 'f': result += '\f'; break;
      case 'n': result += '\n'; break;
      case 'r': result += '\r'; break;
      case 't': result += '\t'; break;
      case 'u': append_utf8(result, code_point()); break;
      default: fail("unknown escape in a JSON string");
    }
  }

  std::uint32_t code_unit() {
    std::uint32_t unit = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = take();
      const auto digit = std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
      if (digit == std::string_view::npos) fail("malformed escape in a JSON string");
      unit = unit * 16 + static_cast<std::uint32_t>(digit);
    }
    return unit;
  }

  std::uint32_t code_point() {
    const std::uint32_t first = code_unit();
    if (first < 0xD800 || first > 0xDFFF) return first;
    if (first > 0xDBFF || take() != '\\' || take() != 'u') fail("half a surrogate pair in a JSON string");
    const std::uint32_t second = code_unit();
    if (second < 0xDC00 || second > 0xDFFF) fail("half a surrogate pair in a JSON string");
    return 0x10000 + ((first - 0xD800) << 10U) + (second - 0xDC00);
  }

  static void append_utf8(std::string& result, std::uint32_t code) {
    const auto put = [&](std::uint32_t byte) { result += static_cast<char>(byte); };
    const auto tail = [&](int shift) { put(0x80U | (code >> shift & 0x3FU)); };
    if (code < 0x80) return put(code);
    if (code < 0x800) return put(0xC0U | code >> 6U), tail(0);
    if (code < 0x10000) return put(0xE0U | code >> 12U), tail(6), tail(0);
    put(0xF0U | code >> 18U), tail(12), tail(6), tail(0);
  }

  void number(Json& result) {
    const std::size_t begin = position_;
    while (std::string_view("0123456789+-.eE").find(peek()) != std::string_view::npos && !at_end()) take();
    const std::string_view digits = text_.substr(begin, position_ - begin);
    if (digits.empty()) fail(at_end() ? "the metadata ends where a JSON value should be" : "expected a JSON value");
    if (digits.find_first_of(".eE") != std::string_view::npos) {
      result.value = parse<double>(digits);
    } else if (digits.front() == '-') {
      result.value = Json::Integer{static_cast<std::uint64_t>(parse<std::int64_t>(digits)), true};
    } else {
      result.value = Json::Integer{parse<std::uint64_t>(digits), false};
    }
  }

  template <typename Number>
  Number parse(std::string_view digits) const {
    Number number{};
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    if (error == std::errc::result_out_of_range) fail("number does not fit 64 bits");
    if (error != std::errc() || stop != end) fail("malformed number");
    return number;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 1;
  std::uint32_t column_ = 1;
  int depth_ = 0;
};

template <typename Kind>
const Kind& as(const Json& json, const char* what) {
  const auto* found = std::get_if<Kind>(&json.value);
  if (found == nullptr) json.fail(std::string("expected ") + what);
  return *found;
}

}  // namespace

const Json::Object& Json::object() const { return as<Object>(*this, "an object"); }
const Json::Array& Json::array() const { return as<Array>(*this, "an array"); }
const std::string& Json::text() const { return as<std::string>(*this, "a string"); }
Json::Integer Json::integer() const { return as<Integer>(*this, "an integer"); }

std::uint64_t Json::count() const {
  const Integer found = integer();
  if (found.is_negative) fail("expected an integer that is not negative");
  return found.bits;
}

std::int64_t Json::number() const {
  const Integer found = integer();
  if (!found.is_negative && found.bits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    fail("number does not fit 63 bits");
  }
  return static_cast<std::int64_t>(found.bits);
}

const Json* Json::find(std::string_view name) const {
  for (const auto& [own, member] : object()) {
    if (own == name) return &member;
  }
  return nullptr;
}

const Json& Json::at(std::string_view name) const {
  const Json* found = find(name);
  if (found == nullptr) fail("property '" + std::string(name) + "' is missing");
  return *found;
}

std::vector<Json> read_json_sequence(std::string_view text) { return Reader(text).run(); }

}  // namespace ldos::ctf
