#include "cli/serving/serve_options.h"

#include <CLI/CLI.hpp>

#include "cli/shared/common_options.h"

namespace frostpipe {

void add_serve_options(CLI::App& command, ServeOptions& options) {
  command.add_option("PLAN", options.plan, "Plan to serve. SIGHUP makes the server read it again")
      ->required()
      ->type_name("");
  command
      .add_option(
          "--model", options.models,
          "Hugging Face folder of the plan's model: a classifier of texts or pictures, or a language model, of any "
          "family that train takes. If the plan has several models, give MODEL=FOLDER for each. For a plan made with "
          "--heads, give NAME=FOLDER for each of the fine-tuned models that share their first layers, or "
          "MODEL=NAME=FOLDER; all of them answer every request")
      ->type_name("[NAME=]FOLDER")
      ->allow_extra_args(false)  // PLAN may follow
      ->take_all();
  command
      .add_option(
          "--device", options.device,
          "Device to compute on: cpu or cuda. emulated computes nothing: workers and links sleep for the plan's "
          "times, so that you can try a plan for devices that are not here")
      ->check(CLI::IsMember({"cpu", "cuda", "emulated"}).description(""))
      ->type_name("DEVICE")
      ->capture_default_str();
  command.add_option("--host", options.host, "Address to listen on for HTTP. Default: 127.0.0.1")->type_name("ADDRESS");
  command
      .add_option("--port", options.port,
                  "Port to listen on for HTTP; 0 takes any. Default: 8000, or none if a load is generated")
      ->check(CLI::Range(0, 65535).description(""))
      ->type_name("N");
  command
      .add_option("--api-key-file", options.api_key_file,
                  "File of one line, the key that every request over HTTP must send as \"Authorization: Bearer KEY\"")
      ->type_name("FILE");
  CLI::Option* const certificate =
      command
          .add_option(
              "--ssl-certfile", options.ssl_certfile,
              "File of the server's certificate (PEM), followed by those between it and an authority that clients "
              "trust. Requests must then come over HTTPS (TLS 1.2 or 1.3)")
          ->type_name("FILE");
  CLI::Option* const key =
      command.add_option("--ssl-keyfile", options.ssl_keyfile, "File of the certificate's key (PEM, no passphrase)")
          ->type_name("FILE")
          ->needs(certificate);
  certificate->needs(key);
  add_serving_load_options(command, options.load);
  command.add_option("-o,--output", options.output, "Folder for serving_run.json and report.html")->type_name("RUN");
  add_format_option(command, options.format);
}

}  // namespace frostpipe
