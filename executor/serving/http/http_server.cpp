#include "executor/serving/http/http_server.h"
namespace frostpipe {
class HttpServer::Implementation {};
HttpServer::HttpServer(ServedModels&, const HttpServerOptions&) {}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return 0; }
}
