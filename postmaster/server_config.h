// From settings to the configuration of the parts that know no settings.
#pragma once

#include <string>

#include "postmaster/settings.h"

namespace sluice {

struct IoWorkerConfig;

void ApplyLogLevel(const Settings& settings);
// Where temporary files lie: DIR/tmp, or a folder of this server's own in temp_directory, which
// other servers may have configured too.
std::string TempDirectory(const Settings& settings, const std::string& data_directory);
// Makes it, where it is missing; a failure is logged: statements that need it will say so again.
void MakeTempDirectory(const std::string& temp_directory);
void FillIoWorkerConfig(const Settings& settings, IoWorkerConfig* config);

}  // namespace sluice
