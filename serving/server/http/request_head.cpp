#include "serving/server/http/request_head.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <string_view>

namespace frostpipe {
namespace {

bool is_same(std::string_view one, std::string_view other) {
  return one.size() == other.size() && strncasecmp(one.data(), other.data(), one.size()) == 0;
}

bool is_json(const httplib::Request& request) {
  if (!request.has_header("Content-Type")) return true;
  const std::string type = request.get_header_value("Content-Type");
  std::string_view name = std::string_view(type).substr(0, type.find(';'));
  while (name.ends_with(' ')) name.remove_suffix(1);
  return is_same(name, "application/json");
}

/// Compares keys of equal length in constant time.
bool is_key(std::string_view given, std::string_view key) {
  if (given.size() != key.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < key.size(); ++i)
    difference = static_cast<unsigned char>(difference | (given[i] ^ key[i]));
  return difference == 0;
}

}  // namespace

bool is_chunked(const httplib::Request& request) { return request.has_header("Transfer-Encoding"); }

std::optional<std::size_t> content_length(const httplib::Request& request) {
  const std::string text = request.get_header_value("Content-Length");
  if (request.get_header_value_count("Content-Length") != 1 || text.empty() || text.size() > 18) return std::nullopt;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  return std::stoull(text);
}

bool has_body(const httplib::Request& request) {
  return is_chunked(request) || (request.has_header("Content-Length") && content_length(request) != 0u);
}

std::optional<HttpAnswer> body_refusal(const httplib::Request& request, std::size_t max_bytes) {
  if (request.has_header("Inference-Header-Content-Length"))
    return http_error(400,
                      "header Inference-Header-Content-Length: must not be given: tensors must be JSON; the "
                      "binary tensor extension is not supported");
  if (!is_json(request))
    return http_error(415, "header Content-Type: must be application/json, is " +
                               request.get_header_value("Content-Type") +
                               "; with curl, pass -H 'Content-Type: application/json'");
  if (request.has_header("Content-Encoding"))
    return http_error(415,
                      "header Content-Encoding: must not be given, is " + request.get_header_value("Content-Encoding"));
  if (is_chunked(request)) {
    if (request.has_header("Content-Length") || request.get_header_value_count("Transfer-Encoding") != 1 ||
        !is_same(request.get_header_value("Transfer-Encoding"), "chunked"))
      return http_error(400, "header Transfer-Encoding: must be chunked, and stand alone");
    return std::nullopt;
  }
  if (!request.has_header("Content-Length")) return http_error(411, "header Content-Length: must be given");
  const std::optional<std::size_t> length = content_length(request);
  if (!length) return http_error(400, "header Content-Length: must be one number of bytes");
  if (*length > max_bytes)
    return http_error(413, fmt::format("header Content-Length: must be at most {} bytes, is {}", max_bytes, *length));
  return std::nullopt;
}

std::optional<HttpAnswer> key_refusal(const httplib::Request& request, const std::string& key) {
  constexpr std::string_view kScheme = "Bearer ";
  if (key.empty() || request.path.starts_with("/v2/health/")) return std::nullopt;
  const std::string given = request.get_header_value("Authorization");
  const std::string_view scheme = std::string_view(given).substr(0, kScheme.size());
  if (request.get_header_value_count("Authorization") == 1 && is_same(scheme, kScheme) &&
      is_key(std::string_view(given).substr(kScheme.size()), key))
    return std::nullopt;
  HttpAnswer answer = http_error(401, "header Authorization: must be \"Bearer KEY\" with the key of this server");
  answer.headers["WWW-Authenticate"] = "Bearer";
  return answer;
}

}  // namespace frostpipe
