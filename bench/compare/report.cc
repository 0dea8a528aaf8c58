#include "bench/compare/report.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace sluice::bench {

bool Measurement::reached() const {
  bool ratio_ok = limit == 0 || (at_least ? ratio() >= limit : ratio() <= limit);
  bool fdw_ok = fdw_factor_min == 0 || (sluice > 0 && fdw_10000 / sluice >= fdw_factor_min);
  return ratio_ok && fdw_ok;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void PrintTable(const std::vector<Measurement>& measurements) {
  fmt::print("\n{:<44} {:>10} {:>10} {:>7} {:>8} {:>11} {:>9}  {}\n", "work", "baseline", "sluice",
             "ratio", "limit", "fdw 10000", "fdw 100", "");
  for (const auto& m : measurements) {
    auto number = [](double value) {
      return value > 0 ? fmt::format("{:.3f}", value) : std::string("-");
    };
    fmt::print("{:<44} {:>10} {:>10} {:>7.2f} {:>1}{:>7.2f} {:>11} {:>9}  {}\n", m.job,
               number(m.baseline), number(m.sluice), m.ratio(), m.at_least ? ">" : "<", m.limit,
               number(m.fdw_10000), number(m.fdw_100),
               m.limit == 0  ? "shown only"
               : m.reached() ? "reached"
                             : "MISSED");
  }
}

void WriteJson(const std::vector<Measurement>& measurements, const std::string& path) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& m : measurements)
    all.push_back({{"job", m.job},
                   {"unit", m.unit},
                   {"baseline", m.baseline},
                   {"sluice", m.sluice},
                   {"ratio", m.ratio()},
                   {"limit", m.limit},
                   {"at_least", m.at_least},
                   {"postgres_fdw_fetch_10000", m.fdw_10000},
                   {"postgres_fdw_fetch_100", m.fdw_100},
                   {"reached", m.reached()}});
  std::ofstream(path) << all.dump(2) << "\n";
}

void WriteSvg(const std::vector<Measurement>& measurements, const std::string& path) {
  constexpr int kRow = 34, kLeft = 330, kWidth = 520, kTop = 40;
  double widest = 2;
  for (const auto& m : measurements)
    if (!m.at_least) widest = std::max(widest, std::min(m.ratio(), 8.0));
  std::ofstream svg(path);
  int height = kTop + kRow * static_cast<int>(measurements.size()) + 30;
  svg << fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{}' height='{}' "
      "font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='white'/>\n"
      "<text x='10' y='22' font-size='15'>Sluice against its baseline (1.0); the mark is the "
      "limit</text>\n",
      kLeft + kWidth + 110, height);
  auto x = [&](double ratio) { return kLeft + kWidth * std::min(ratio, widest) / widest; };
  int y = kTop;
  for (const auto& m : measurements) {
    svg << fmt::format("<text x='{}' y='{}' text-anchor='end'>{}</text>\n", kLeft - 8, y + 18,
                       m.job);
    svg << fmt::format("<rect x='{}' y='{}' width='{:.1f}' height='18' fill='{}'/>\n", kLeft, y + 5,
                       x(m.ratio()) - kLeft, m.reached() ? "#4c9f70" : "#c8553d");
    svg << fmt::format(
        "<line x1='{0:.1f}' x2='{0:.1f}' y1='{1}' y2='{2}' stroke='black' stroke-width='2'/>\n",
        x(m.limit), y + 1, y + 27);
    svg << fmt::format("<text x='{:.1f}' y='{}'>{:.2f}</text>\n", x(m.ratio()) + 6, y + 18,
                       m.ratio());
    y += kRow;
  }
  svg << fmt::format(
      "<line x1='{0:.1f}' x2='{0:.1f}' y1='{1}' y2='{2}' stroke='#888' stroke-dasharray='4'/>\n",
      x(1.0), kTop, y);
  svg << "</svg>\n";
}

}  // namespace sluice::bench
