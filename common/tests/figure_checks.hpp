#pragma once
// What the tests of figures need: a timeline to draw, and readers of XML that accept nothing wrong.
#include <fmt/format.h>

#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/observe/timeline.hpp"

namespace fivecuts {

inline Event event_of(Event::Kind kind, Lane lane, const std::string& name, double start,
                      double end, double waited = 0) {
  const bool computes = kind == Event::Kind::compute;
  return {kind, lane, name, start, end, waited, computes ? 0 : 1500, computes ? "" : "dp"};
}

inline Event work(const std::string& name, double start, double end) {
  return event_of(Event::Kind::compute, Lane::compute, name, start, end);
}

/// One iteration of data parallelism: the reduction begins before the backward pass ends. The last
/// rank is slower, and the others wait for it.
inline Timeline iteration(std::size_t ranks, double slow = 1.5, const std::string& title = "dp") {
  Timeline timeline{title, {}};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const double step = 10e-6 * (rank + 1 == ranks ? slow : 1), arrives = 70e-6 * slow;
    std::vector<Event> events;
    for (int i = 0; i < 4; ++i)
      events.push_back(work(fmt::format("forward {}", i), i * step, (i + 1) * step));
    events.push_back(work("backward", 4 * step, 8 * step));
    events.push_back(event_of(Event::Kind::collective, Lane::comm, "all_reduce", 7 * step,
                              arrives + 50e-6, arrives - 7 * step));
    events.push_back(work("update", arrives + 50e-6, arrives + 60e-6));
    timeline.ranks.push_back(events);
  }
  return timeline;
}

inline std::string long_name(int words) {
  std::string name;
  for (int i = 0; i < words; ++i) name += "quite_a_long_name_";
  return name;
}

inline Timeline hostile() {
  return {"<&\"> 数据并行 " + long_name(10),
          {{work("<&\">", 0, 1), work(long_name(8), 1, 2), work("bad \xff byte\x01", 2, 3)},
           {event_of(Event::Kind::message, Lane::comm, "接收", 0, 3, 3)}}};
}

/// Every shape of input that a drawing has to survive.
inline std::vector<std::vector<Timeline>> all_inputs() {
  const Timeline zero{"zero", {{work("a", 5, 5), work("b", 5, 5)}, {}}};
  const Timeline slivers{"slivers", {{work("a", 0, 1e-12), work("b", 1e-12, 1), work("c", 1, 1)}}};
  const Timeline tiny{"tiny", {{work("a", 0, 5e-324)}}};
  const Timeline huge{"huge", {{work("a", 0, 1e15), work("b", 1e15, 3e300)}}};
  return {{},
          {{"", {}}},
          {{"no events", {{}, {}}}},
          {zero},
          {zero, iteration(3)},
          {slivers},
          {tiny},
          {huge},
          {iteration(1)},
          {iteration(64)},
          {iteration(16), iteration(17)},
          {iteration(2, 3), iteration(2, 1)},
          {iteration(4), iteration(4, 3), hostile()}};
}

struct Element {
  std::string name, text;  ///< text: references resolved
  std::map<std::string, std::string> attributes;
  int group = 0;  ///< the number of the innermost <g> around it, 0 if there is none
  std::string of(const std::string& attribute) const {
    const auto found = attributes.find(attribute);
    return found == attributes.end() ? "" : found->second;
  }
  double number(const std::string& attribute) const { return std::stod(of(attribute)); }
};

inline std::string resolved(const std::string& text) {
  static const std::map<std::string, std::string> references = {
      {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}};
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) < 0x20 && text[i] != '\n')
      throw std::runtime_error("a control character");
    if (text[i] != '&') {
      out += text[i];
      continue;
    }
    const auto found = references.find(text.substr(i, text.find(';', i) + 1 - i));
    if (found == references.end()) throw std::runtime_error("a bare & in " + text);
    out += found->second;
    i += found->first.size() - 1;
  }
  return out;
}

inline Element read_tag(const std::string& tag) {
  static const std::regex shape(R"re((\w+)((?:\s+[\w:-]+="[^"<]*")*)/?)re");
  static const std::regex attribute(R"re(\s+([\w:-]+)="([^"<]*)")re");
  std::smatch parts;
  if (!std::regex_match(tag, parts, shape)) throw std::runtime_error("no tag: <" + tag + ">");
  Element element{parts[1], "", {}};
  const std::string all = parts[2];
  for (std::sregex_iterator i(all.begin(), all.end(), attribute), end; i != end; ++i) {
    if (!element.attributes.emplace((*i)[1], resolved((*i)[2])).second)
      throw std::runtime_error("an attribute twice in <" + tag + ">");
  }
  return element;
}

/// All elements in the order of their start tags. Throws unless `xml` is well-formed (for the
/// subset without comments, declarations and CDATA).
inline std::vector<Element> read_xml(const std::string& xml) {
  std::vector<Element> elements;
  std::vector<std::size_t> open;
  std::vector<int> groups = {0};
  int group_count = 0;
  for (std::size_t at = 0; at < xml.size();) {
    if (xml[at] != '<') {
      const std::string text = xml.substr(at, xml.find('<', at) - at);
      at += text.size();
      if (!open.empty())
        elements[open.back()].text += resolved(text);
      else if (text != "\n")
        throw std::runtime_error("text outside the root: " + text);
      continue;
    }
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos) throw std::runtime_error("an open tag at the end");
    const std::string tag = xml.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.starts_with('/')) {
      if (open.empty() || elements[open.back()].name != tag.substr(1))
        throw std::runtime_error("unbalanced </" + tag.substr(1) + ">");
      if (tag == "/g") groups.pop_back();
      open.pop_back();
      continue;
    }
    if (open.empty() && !elements.empty()) throw std::runtime_error("a second root");
    elements.push_back(read_tag(tag));
    if (elements.back().name == "g") groups.push_back(++group_count);
    elements.back().group = groups.back();
    if (!tag.ends_with('/')) open.push_back(elements.size() - 1);
  }
  if (!open.empty() || elements.empty()) throw std::runtime_error("an element is never closed");
  return elements;
}

}  // namespace fivecuts
