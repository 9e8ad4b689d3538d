#pragma once
// Implementation header, of .cpp files alone: what is decided by a request's head, before its body comes.
#include <httplib.h>

#include <optional>
#include <string>

#include "serving/server/http/http_routes.h"

namespace frostpipe {

bool is_chunked(const httplib::Request& request);
/// Bytes; none where the header is missing, given twice or no number.
std::optional<std::size_t> content_length(const httplib::Request& request);
bool has_body(const httplib::Request& request);
/// Why the body of a request to infer cannot be read; none: it can.
std::optional<HttpAnswer> body_refusal(const httplib::Request& request, std::size_t most_bytes);
/// 401 where there is a key and the request does not have it. Probes of "/v2/health/" need none: they say nothing but
/// whether the server and its models are ready.
std::optional<HttpAnswer> key_refusal(const httplib::Request& request, const std::string& key);

}  // namespace frostpipe
