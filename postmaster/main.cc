// The command line: sluice init|start|stop|reload|status -D DIR, sluice cluster up|down|urls.
#include <CLI/CLI.hpp>

#include "postmaster/cluster.h"
#include "postmaster/control.h"

namespace sluice {
namespace {

int Run(const std::vector<std::string>& args);

CLI::App* AddServerCommand(CLI::App* app, const char* name, const char* description,
                           std::string* directory) {
  CLI::App* command = app->add_subcommand(name, description);
  command->add_option("-D,--directory", *directory, "the server's data directory")
      ->required()
      ->envname("SLUICE_DATA");
  return command;
}

int RunCluster(CLI::App* cluster, const ClusterOptions& options) {
  if (cluster->got_subcommand("up")) return ClusterUp(options, Run);
  if (cluster->got_subcommand("down")) return ClusterDown(options, Run);
  return ClusterUrls(options);
}

void AddCluster(CLI::App* cluster, ClusterOptions* options) {
  cluster->require_subcommand(1);
  for (auto [name, description] :
       {std::pair{"up", "start shards and a Sluice, making them if needed"},
        {"down", "stop them"},
        {"urls", "print the connection URLs: Sluice's, then the shards'"}}) {
    CLI::App* command = cluster->add_subcommand(name, description);
    command->add_option("--dir", options->directory, "the cluster's directory")->required();
    if (std::string_view(name) != "up") continue;
    command->add_option("--shards", options->shards, "number of Postgres shards")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    command->add_option("--port", options->port, "Sluice's port")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str();
    command->add_option("--shard-port", options->shard_port, "the first shard's port")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str();
    command->add_option("--set", options->settings, "a line for Sluice's configuration file");
    command->add_option("--shard-set", options->shard_settings, "a line for each shard's");
  }
}

int Run(const std::vector<std::string>& args) {
  CLI::App app("Sluice: one SQL endpoint over many Postgres servers", "sluice");
  app.require_subcommand(1);
  std::string directory, mode = "fast";
  bool foreground = false;
  int timeout_s = 60;
  AddServerCommand(&app, "init", "make a new data directory", &directory);
  CLI::App* start = AddServerCommand(&app, "start", "start the server", &directory);
  start->add_flag("-F,--foreground", foreground, "stay in the foreground and log to the terminal");
  start->add_option("-t,--timeout", timeout_s, "seconds to wait")->capture_default_str();
  CLI::App* stop = AddServerCommand(&app, "stop", "stop the server", &directory);
  stop->add_option("-m,--mode", mode,
                   "smart: wait for clients; fast: end their sessions; immediate")
      ->check(CLI::IsMember({"smart", "fast", "immediate"}))
      ->capture_default_str();
  stop->add_option("-t,--timeout", timeout_s, "seconds to wait")->capture_default_str();
  AddServerCommand(&app, "reload", "read the configuration file again", &directory);
  AddServerCommand(&app, "status", "show whether the server runs, and what it does", &directory);
  ClusterOptions cluster_options;
  CLI::App* cluster =
      app.add_subcommand("cluster", "local shards with a Sluice in front, for trying out");
  AddCluster(cluster, &cluster_options);
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));  // CLI11 takes them backwards
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (app.got_subcommand("init")) return InitCommand(directory);
  if (app.got_subcommand("start")) return StartCommand(directory, foreground, timeout_s);
  if (app.got_subcommand("stop")) return StopCommand(directory, mode, timeout_s);
  if (app.got_subcommand("reload")) return ReloadCommand(directory);
  if (app.got_subcommand("status")) return StatusCommand(directory);
  return RunCluster(cluster, cluster_options);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  return sluice::Run({argv + 1, argv + argc});
}
