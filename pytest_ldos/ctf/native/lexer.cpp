#include "lexer.hpp"

#include <array>
#include <charconv>

namespace ldos::ctf {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
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
    } else if (c == '"') {
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

  std::string quoted() {
    std::string text;
    take();
    while (peek() != '"') {
      if (position_ >= source_.size() || peek() == '\n') fail("string without closing quote");
      char c = take();
      if (c == '\\') c = escaped();
      text += c;
    }
    take();
    return text;
  }

  char escaped() {
    if (position_ >= source_.size()) fail("string without closing quote");
    const char c = take();
    switch (c) {
      case 'n': return '\n';
      case 't': return '\t';
      case 'r': return '\r';
      case '0': return '\0';
      default: return c;
    }
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
