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

/// Documents of JSON in which any field is what no program of ours would write there: of another type, out of range,
/// no JSON at all, nested or long, missing, there twice. The same in every run.
class HostileJson {
 public:
  /// `valid`: an object or a list as text.
  HostileJson(std::string_view valid, std::uint64_t seed);

  /// First those with a single change: for each kind of place - places that differ by indices of lists alone are of one
  /// kind - each of the changes once, in any order. Then those with two to four, each of one place or of all of its
  /// kind.
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
