#pragma once
// Implementation header, for .cpp files only: decisions by a request's head, before its body is read.
#include <httplib.h>

#include <optional>
#include <string>

#include "serving/server/http/http_routes.h"

namespace frostpipe {

bool is_chunked(const httplib::Request& request);
/// Returns nothing if the header is missing, repeated or not a number.
std::optional<std::size_t> content_length(const httplib::Request& request);
bool has_body(const httplib::Request& request);
/// Returns an error if the body of an inference request cannot be read; nothing otherwise.
std::optional<HttpAnswer> body_refusal(const httplib::Request& request, std::size_t max_bytes);
/// Returns 401 if a key is required and the request does not have it. Probes of "/v2/health/" need none, since they
/// only tell whether the server and its models are ready.
std::optional<HttpAnswer> key_refusal(const httplib::Request& request, const std::string& key);

}  // namespace frostpipe
