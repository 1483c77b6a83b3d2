// JSON text (RFC 8259) to values that know their position.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lexer.hpp"

namespace ldos::ctf {

struct Property;

struct Json {
  using Array = std::vector<Json>;
  using Object = std::vector<Property>;  // names are distinct

  struct Null {};
  struct Integer {
    std::uint64_t bits = 0;  // two's complement
    bool is_negative = false;
  };

  std::variant<Null, bool, Integer, double, std::string, Array, Object> value;
  std::uint32_t line = 1;
  std::uint32_t column = 1;

  [[noreturn]] void fail(const std::string& reason) const { throw MetadataError(line, column, reason); }

  // Each of these fails if the value is of another kind.
  [[nodiscard]] const Object& object() const;
  [[nodiscard]] const Array& array() const;
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] Integer integer() const;
  [[nodiscard]] std::uint64_t count() const;  // an integer that is not negative
  [[nodiscard]] std::int64_t number() const;

  // A property of an object; null, or a failure, if there is none.
  [[nodiscard]] const Json* find(std::string_view name) const;
  [[nodiscard]] const Json& at(std::string_view name) const;
};

struct Property {
  std::string name;
  Json value;
};

// All values of a JSON text sequence (RFC 7464), or of consecutive JSON texts.
// Throws MetadataError.
std::vector<Json> read_json_sequence(std::string_view text);

}  // namespace ldos::ctf
