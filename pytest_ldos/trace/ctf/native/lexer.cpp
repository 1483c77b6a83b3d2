#include "lexer.hpp"

#include <array>
#include <charconv>

namespace ldos::ctf {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_octal(char c) { return c >= '0' && c <= '7'; }
bool is_hexadecimal(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
int digit(char c) { return is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    while (skip_blanks(), position_ < source_.size()) tokens.push_back(next());
    Token end;
    end.line = line_;
    end.column = column_;
    tokens.push_back(end);
    return tokens;
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return position_ + ahead < source_.size() ? source_[position_ + ahead] : '\0';
  }

  char take() {
    const char c = source_[position_++];
    if (c == '\n') {
      ++line_;
      column_ = 1;
    } else {
      ++column_;
    }
    return c;
  }

  [[noreturn]] void fail(const std::string& reason) const { throw MetadataError(line_, column_, reason); }

  void skip_blanks() {
    while (position_ < source_.size()) {
      if (is_space(peek())) {
        take();
      } else if (peek() == '/' && peek(1) == '*') {
        skip_block_comment();
      } else if (peek() == '/' && peek(1) == '/') {
        while (position_ < source_.size() && peek() != '\n') take();
      } else {
        return;
      }
    }
  }

  void skip_block_comment() {
    const auto line = line_;
    const auto column = column_;
    take();
    take();
    while (!(peek() == '*' && peek(1) == '/')) {
      if (position_ >= source_.size()) throw MetadataError(line, column, "comment without end");
      take();
    }
    take();
    take();
  }

  Token next() {
    Token token;
    token.line = line_;
    token.column = column_;
    const char c = peek();
    if (is_letter(c)) {
      token.kind = Token::Kind::identifier;
      while (is_letter(peek()) || is_digit(peek())) token.text += take();
    } else if (is_digit(c)) {
      token.kind = Token::Kind::number;
      token.number = number();
    } else if (c == '"' || c == '\'') {
      token.kind = Token::Kind::text;
      token.text = quoted();
    } else {
      token.kind = Token::Kind::punctuation;
      token.text = punctuation();
    }
    return token;
  }

  std::uint64_t number() {
    int base = 10;
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
      base = 16;
      take();
      take();
    } else if (peek() == '0' && is_digit(peek(1))) {
      base = 8;
    }
    std::string digits;
    while (is_letter(peek()) || is_digit(peek())) digits += take();
    while (!digits.empty() && std::string_view("uUlL").find(digits.back()) != std::string_view::npos) digits.pop_back();
    std::uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
    if (error == std::errc::result_out_of_range) fail("number does not fit 64 bits");
    if (error != std::errc() || stop != end) fail("malformed number");
    return value;
  }

  // Between quotes of either kind, also over several lines: LTTng does not escape labels. Characters
  // after a null character are no part of it.
  std::string quoted() {
    const auto line = line_;
    const auto column = column_;
    std::string text;
    for (const char quote = take(); peek() != quote;) {
      if (position_ >= source_.size()) throw MetadataError(line, column, "string without closing quote");
      const char c = take();
      text += c == '\\' ? escaped() : c;
    }
    take();
    return text.substr(0, text.find('\0'));
  }

  char escaped() {
    if (position_ >= source_.size()) fail("string without closing quote");
    if (is_octal(peek())) return coded(8);
    const char c = take();
    switch (c) {
      case 'a': return '\a';
      case 'b': return '\b';
      case 'f': return '\f';
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      case 'v': return '\v';
      case 'x': return coded(16);
      case '\\':
      case '\'':
      case '"':
      case '?': return c;
      default: fail("unknown character escape");
    }
  }

  // Up to three digits.
  char coded(int base) {
    int value = 0;
    int digits = 0;
    for (; digits < 3 && (base == 8 ? is_octal(peek()) : is_hexadecimal(peek())); ++digits) {
      value = value * base + digit(take());
    }
    if (digits == 0) fail("character escape without digits");
    if (value > 255) fail("character escape that does not fit a byte");
    return static_cast<char>(value);
  }

  std::string punctuation() {
    static constexpr std::array<std::string_view, 3> kLong = {"...", ":=", "->"};
    for (const auto candidate : kLong) {
      if (source_.substr(position_, candidate.size()) == candidate) {
        for (std::size_t i = 0; i < candidate.size(); ++i) take();
        return std::string(candidate);
      }
    }
    if (std::string_view("{}[]()<>;:,=.+-*").find(peek()) == std::string_view::npos) fail("unexpected character");
    return std::string(1, take());
  }

  std::string_view source_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 1;
  std::uint32_t column_ = 1;
};

}  // namespace

std::vector<Token> lex(std::string_view source) { return Lexer(source).run(); }

}  // namespace ldos::ctf
