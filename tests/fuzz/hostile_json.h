#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frostpipe::test {

/// JSON documents in which any field has a value that frostpipe would not write: of another type, out of range, not
/// JSON, deeply nested or long, missing, or duplicated. They are the same in every run.
class HostileJson {
 public:
  /// `valid`: an object or a list as text.
  HostileJson(std::string_view valid, std::uint64_t seed);

  /// First come documents with a single change: each change once for each kind of path, in any order; paths that differ
  /// only in indices of lists are of one kind. Then come documents with two to four changes, each at one path or at all
  /// paths of its kind.
  std::string next();

 private:
  using Json = nlohmann::ordered_json;
  using Pointer = Json::json_pointer;
  struct Change {
    std::size_t kind = 0, way = 0;
  };

  void collect(const Json& json, const Pointer& place, const std::string& kind);
  void change_at(Json& document, const Pointer& place, std::size_t way) const;
  void change_one(Json& document, const Change& change);
  void change_all(Json& document, const Change& change) const;
  std::size_t below(std::size_t bound) { return random_() % bound; }

  Json valid_;
  std::vector<std::pair<std::string, std::vector<Pointer>>> kinds_;
  std::vector<Change> single_;
  std::size_t next_ = 0;
  std::mt19937_64 random_;
};

}  // namespace frostpipe::test
