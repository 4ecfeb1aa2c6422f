// Numbered strings.
#include "string_index.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/check.hpp"

namespace hedgerow::tests {
namespace {

TEST(strings) {
  StringIndex index;
  CHECK(index.size() == 0 && index.find("") == -1 && index.find("a") == -1);
  std::vector<std::string> strings{"", std::string(1, '\0'), std::string(2, '\0')};
  for (int i = 0; i < 3000; ++i) strings.push_back(std::string(i % 40, 'x') + std::to_string(i));
  for (size_t i = 0; i < strings.size(); ++i) {
    CHECK(index.add(strings[i]) == static_cast<int32_t>(i));
    CHECK(index.add(strings[i / 2]) == static_cast<int32_t>(i / 2));
  }
  const StringIndex copy = index;
  CHECK(copy.size() == static_cast<int64_t>(strings.size()) && copy.find("y") == -1);
  const std::vector<std::string_view> views(strings.begin(), strings.end());
  std::vector<int32_t> ids(strings.size(), -1);
  copy.find_all(views.data(), static_cast<int64_t>(views.size()), ids.data());
  std::string text;
  for (size_t i = 0; i < strings.size(); ++i) {
    CHECK(copy.find(strings[i]) == static_cast<int32_t>(i) && ids[i] == copy.find(strings[i]));
    CHECK(copy.at(static_cast<int64_t>(i)) == strings[i]);
    CHECK(copy.offsets()[i] == static_cast<int64_t>(text.size()));
    text += strings[i];
  }
  CHECK(std::string(copy.text().begin(), copy.text().end()) == text);
  CHECK(copy.offsets().back() == static_cast<int64_t>(text.size()));
}

}  // namespace
}  // namespace hedgerow::tests
