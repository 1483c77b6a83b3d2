// TSDL text to tokens.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ldos::ctf {

struct MetadataError : std::runtime_error {
  MetadataError(std::uint32_t line, std::uint32_t column, const std::string& reason)
      : std::runtime_error("line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + reason) {}
};

struct Token {
  enum class Kind : std::uint8_t { identifier, number, text, punctuation, end };

  Kind kind = Kind::end;
  std::string text;          // identifier, punctuation, or the unescaped string
  std::uint64_t number = 0;  // for numbers
  std::uint32_t line = 1;
  std::uint32_t column = 1;

  [[nodiscard]] bool is(std::string_view value) const {
    return (kind == Kind::identifier || kind == Kind::punctuation) && text == value;
  }
};

// Throws MetadataError. The last token is always of kind `end`.
std::vector<Token> lex(std::string_view source);

}  // namespace ldos::ctf
