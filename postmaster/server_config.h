// From settings to the configuration of the parts that know no settings.
#pragma once

#include "postmaster/settings.h"

namespace sluice {

struct IoWorkerConfig;

void ApplyLogLevel(const Settings& settings);
void FillIoWorkerConfig(const Settings& settings, IoWorkerConfig* config);

}  // namespace sluice
