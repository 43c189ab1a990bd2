// SPDX-License-Identifier: Apache-2.0
//
// The anchor of approximate matching: edlib's infix mode with the location, on
// bytes.
//
//	edlib TEXT MILLISECONDS PATTERN...
//
// prints how many bytes of text it goes through in a second, over all the
// patterns, and then the distance of each.

#include <edlib.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
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
  const std::chrono::milliseconds least(std::atoi(argv[2]));
  std::vector<std::string> patterns;
  for (int i = 3; i < argc; i++) patterns.push_back(read(argv[i]));
  std::vector<int> distances(patterns.size());
  const auto began = std::chrono::steady_clock::now();
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
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    if (took >= least) {
      std::printf("%.0f\n", bytes / took.count());
      break;
    }
  }
  for (int d : distances) std::printf("%d\n", d);
}
