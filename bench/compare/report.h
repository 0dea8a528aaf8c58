// The results of a run: a table on the terminal, JSON, and an SVG plot.
#pragma once

#include <string>
#include <vector>

namespace sluice::bench {

struct Measurement {
  std::string job;
  std::string unit;     // of the two numbers: "s", "ms", "rows/s", "MiB"
  double baseline = 0;  // raw drain, or what the job names
  double sluice = 0;
  // The ratio sluice / baseline must not pass (or must reach, if at_least); 0: shown only.
  double limit = 0;
  bool at_least = false;
  double fdw_10000 = 0;  // postgres_fdw, fetch_size 10000; 0 = not measured
  double fdw_100 = 0;
  double fdw_factor_min = 0;  // how many times faster than postgres_fdw it must be; 0 = not asked
  double ratio() const { return baseline > 0 ? sluice / baseline : 0; }
  bool reached() const;
};

double Median(std::vector<double> values);
void PrintTable(const std::vector<Measurement>& measurements);
void WriteJson(const std::vector<Measurement>& measurements, const std::string& path);
void WriteSvg(const std::vector<Measurement>& measurements, const std::string& path);

}  // namespace sluice::bench
