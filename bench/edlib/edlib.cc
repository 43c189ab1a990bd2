// SPDX-License-Identifier: Apache-2.0
//
// The anchor of approximate matching: edlib's infix mode with the location, on
// bytes.
//
//	edlib TEXT MILLISECONDS PATTERN...
//
// prints how many bytes of text it goes through in a second of processor time,
// over all the patterns, and then the distance of each.

#include <edlib.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

static std::string read(const char *name) {
  std::ifstream in(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  const std::string text = read(argv[1]);
  const double least = std::atoi(argv[2]) / 1000.0;
  std::vector<std::string> patterns;
  for (int i = 3; i < argc; i++) patterns.push_back(read(argv[i]));
  std::vector<int> distances(patterns.size());
  const std::clock_t began = std::clock();
  double bytes = 0;
  for (;;) {
    for (size_t i = 0; i < patterns.size(); i++) {
      const std::string &p = patterns[i];
      const EdlibAlignResult r =
          edlibAlign(p.data(), p.size(), text.data(), text.size(),
                     edlibNewAlignConfig(p.size() * 3 / 10, EDLIB_MODE_HW, EDLIB_TASK_LOC, nullptr, 0));
      if (r.status != EDLIB_STATUS_OK) return 1;
      distances[i] = r.editDistance;
      edlibFreeAlignResult(r);
      bytes += text.size();
    }
    const double took = double(std::clock() - began) / CLOCKS_PER_SEC;
    if (took >= least) {
      std::printf("%.0f\n", bytes / took);
      break;
    }
  }
  for (int d : distances) std::printf("%d\n", d);
}
