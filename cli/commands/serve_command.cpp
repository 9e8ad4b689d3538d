#include <unistd.h>
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/serving/serve_plan.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "serving/server/worker/run_worker.h"

namespace frostpipe {

Command add_serve_command(CLI::App& app) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* command =
      app.add_subcommand("serve", "Answer requests by the pipelines of a serving plan, on this machine");
  command->add_option("PLAN", options->plan, "Plan to serve; SIGHUP reads it again")->required()->type_name("");
  command
      ->add_option("--model", options->models,
                   "Hugging Face folder of the plan's model: a classifier of texts or pictures, or GPT-2. NAME=FOLDER "
                   "for each of several")
      ->type_name("[NAME=]FOLDER")
      ->take_all();
  command
      ->add_option(
          "--head", options->heads,
          "One of several fine-tuned models that share their first layers, of a plan made with --heads: a name "
          "for its answers and its Hugging Face folder. Given once for each; every request is answered by all")
      ->type_name("[MODEL=]NAME=FOLDER")
      ->take_all();
  command->add_flag("--emulate", options->emulate,
                    "Compute nothing: workers and links take the plan's times, so that a plan for devices that are not "
                    "here can be tried");
  command->add_option("--host", options->host, "Address to listen on for HTTP (127.0.0.1)")->type_name("ADDRESS");
  command
      ->add_option("--port", options->port, "Port to listen on for HTTP (8000; none where a load is generated); 0: any")
      ->check(CLI::Range(0, 65535).description(""))
      ->type_name("N");
  command
      ->add_option("--api-key-file", options->api_key_file,
                   "File of one line, the key without which a request over HTTP is refused; it is sent as "
                   "\"Authorization: Bearer KEY\"")
      ->type_name("FILE");
  command
      ->add_option("--ssl-certfile", options->ssl_certfile,
                   "File of the server's certificate (PEM), followed by those between it and an authority that clients "
                   "trust; requests must come over HTTPS (TLS 1.2 or 1.3) then")
      ->type_name("FILE");
  command->add_option("--ssl-keyfile", options->ssl_keyfile, "File of the certificate's key (PEM, no passphrase)")
      ->type_name("FILE");
  add_device_option(*command, options->device);
  add_count_option(*command, "--threads-per-worker", options->threads,
                   "Threads that a worker on the CPU computes with");
  add_serving_load_options(*command, options->load);
  command->add_option("-o,--output", options->output, "Folder for serving_run.json and report.html")->type_name("RUN");
  add_format_option(*command, options->format);
  command->footer(
      "Examples:\n"
      "  frostpipe serve serving.json --model runs/elastic/model\n"
      "  frostpipe serve heads.json --head topic=runs/topic/model --head tone=runs/tone/model\n"
      "  frostpipe serve serving.json --emulate --load-factor 0.9 --seconds 30");
  return {command, [options] {
            if (is_serving_worker()) return run_serving_worker(load_partition);
            print_result(serve_plan(*options, open_servable_model));
            return 0;
          }};
}

}  // namespace frostpipe
