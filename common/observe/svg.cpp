#include "common/observe/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/support/error.hpp"

namespace fivecuts {
namespace {

constexpr double margin = 16;
constexpr std::size_t fills = 8, wires = 4;

struct Colour {
  const char *name, *light, *dark;
};
constexpr Colour colours[] = {{"paper", "#ffffff", "#15191e"}, {"ink", "#1f2328", "#e6e9ec"},
                              {"faint", "#59636e", "#9da7b1"}, {"grid", "#d8dee4", "#343b43"},
                              {"label", "#14171a", "#14171a"}, {"edge", "#6e7781", "#15191e"},
                              {"fill0", "#77aadd", "#77aadd"}, {"fill1", "#ee8866", "#ee8866"},
                              {"fill2", "#eedd88", "#eedd88"}, {"fill3", "#ffaabb", "#ffaabb"},
                              {"fill4", "#44bb99", "#44bb99"}, {"fill5", "#99ddff", "#99ddff"},
                              {"fill6", "#bbcc33", "#bbcc33"}, {"fill7", "#aaaa00", "#aaaa00"},
                              {"wire0", "#e0e0e0", "#e0e0e0"}, {"wire1", "#b4b4b4", "#b4b4b4"},
                              {"wire2", "#c9c4e0", "#c9c4e0"}, {"wire3", "#94a3ad", "#94a3ad"}};

/// Where a viewer knows no variables it takes the light colour before them, and where it knows no
/// media query the light variables; so the paper is drawn too.
std::string style() {
  std::string light, dark, rules;
  for (const auto& [name, by_day, by_night] : colours) {
    light += fmt::format("--{}:{};", name, by_day);
    dark += fmt::format("--{}:{};", name, by_night);
    rules += fmt::format(".{0}{{fill:{1};fill:var(--{0})}}\n", name, by_day);
    rules += fmt::format(".{0}-line{{stroke:{1};stroke:var(--{0})}}\n", name, by_day);
  }
  return fmt::format(
      "<style>\n:root{{{}}}\n@media (prefers-color-scheme:dark){{:root{{{}}}}}\n{}"
      "text{{font-family:system-ui,\"Segoe UI\",\"Noto Sans\",\"Noto Sans CJK SC\",\"PingFang SC\","
      "\"Microsoft YaHei\",sans-serif}}\n</style>\n",
      light, dark, rules);
}

constexpr const char* hatch = R"svg(<defs>
<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse"
  patternTransform="rotate(45)">
<line x1="0" y1="0" x2="0" y2="5" stroke-width="1.6" class="faint-line"/>
</pattern>
</defs>
)svg";

/// The bytes of the character that `text` begins with, "" if it is no UTF-8.
std::string_view first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 1;
  if (lead >= 0xF5 || (lead >= 0x80 && length == 1)) return "";
  if (length > text.size()) return "";
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0u) != 0x80u) return "";
  }
  return text.substr(0, length);
}

/// `text` for XML: what is markup written as references, what XML cannot hold replaced by '?'.
std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    const char c = text[0];
    const bool control = static_cast<unsigned char>(c) < 0x20 && c != '\n';
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (character.empty() || control)
      out += '?';
    else
      out += character;
    text.remove_prefix(std::max<std::size_t>(1, character.size()));
  }
  return out;
}

/// At most two decimals and no exponent, the same on every machine.
std::string number(double value) {
  require(std::isfinite(value) && std::abs(value) < 1e9, "a picture has only finite numbers");
  std::string digits = fmt::format("{:.2f}", value);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

}  // namespace

double text_width(std::string_view text, double size, bool bold) {
  constexpr std::string_view widest = "mwMW@%";
  constexpr std::string_view wide = "ABCDEFGHIJKLNOPQRSTUVXYZ&#+<=>~^";
  const auto in = [](std::string_view set, char c) {
    return set.find(c) != std::string_view::npos;
  };
  double em = 0;
  while (!text.empty()) {
    const std::size_t bytes = first_character(text).size();
    if (bytes > 1)
      em += bytes == 4 ? 1.4 : 1;  // four bytes: an emoji
    else
      em += in(widest, text[0]) ? 1 : in(wide, text[0]) ? 0.84 : 0.65;
    text.remove_prefix(std::max<std::size_t>(1, bytes));
  }
  return em * size * (bold ? 1.12 : 1);
}

std::string Svg::fill(std::size_t index) { return fmt::format("fill{}", index % fills); }

std::string Svg::wire(std::size_t index) { return fmt::format("wire{}", index % wires); }

void Svg::extend(const Box& box) {
  left_ = empty_ ? box.x : std::min(left_, box.x);
  top_ = empty_ ? box.y : std::min(top_, box.y);
  right_ = empty_ ? box.x + box.width : std::max(right_, box.x + box.width);
  bottom_ = empty_ ? box.y + box.height : std::max(bottom_, box.y + box.height);
  empty_ = false;
}

void Svg::rectangle(const Box& box, const std::string& attributes) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}/>\n", number(box.x),
                       number(box.y), number(box.width), number(box.height), attributes);
  extend(box);
}

void Svg::box(const Box& box, const std::string& fill) {
  rectangle(box, fmt::format("class=\"{} edge-line\" stroke-width=\"0.5\"", fill));
}

void Svg::hatched_box(const Box& box, const std::string& fill) {
  rectangle(box,
            fmt::format("class=\"{} edge-line\" stroke-width=\"0.5\" fill-opacity=\"0.35\"", fill));
  rectangle(box, "fill=\"url(#hatch)\"");
}

void Svg::line(double x1, double y1, double x2, double y2, const char* colour) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}-line\"/>\n",
                       number(x1), number(y1), number(x2), number(y2), colour);
  extend({std::min(x1, x2), std::min(y1, y2), std::abs(x2 - x1), std::abs(y2 - y1)});
}

void Svg::text(double x, double y, std::string_view text, const Text& how) {
  static constexpr const char* anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" class=\"{}\"{}{}>{}</text>\n",
                       number(x), number(y), number(how.size), how.colour,
                       anchors[static_cast<int>(how.align)],
                       how.bold ? " font-weight=\"bold\"" : "", escaped(text));
  const double width = text_width(text, how.size, how.bold);
  const double shift = how.align == Align::left     ? 0
                       : how.align == Align::middle ? width / 2
                                                    : width;
  extend({x - shift, y - how.size, width, 1.3 * how.size});
}

bool Svg::label(const Box& box, std::string_view text, double size) {
  if (text_width(text, size) + 4 > box.width || size > box.height) return false;
  this->text(box.x + box.width / 2, box.y + box.height / 2 + 0.36 * size, text,
             {size, Align::middle, "label"});
  return true;
}

void Svg::begin_group(std::string_view tooltip) {
  body_ += fmt::format("<g><title>{}</title>\n", escaped(tooltip));
}

void Svg::end_group() { body_ += "</g>\n"; }

std::string Svg::document(std::string_view title) const {
  const std::string x = number(left_ - margin), y = number(top_ - margin);
  const std::string width = number(std::ceil(right_ - left_ + 2 * margin));
  const std::string height = number(std::ceil(bottom_ - top_ + 2 * margin));
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{0} {1} {2} {3}\" width=\"{2}\" "
      "height=\"{3}\" "
      "role=\"img\">\n<title>{4}</title>\n{5}{6}<rect class=\"paper\" x=\"{0}\" y=\"{1}\" "
      "width=\"{2}\" "
      "height=\"{3}\"/>\n{7}</svg>\n",
      x, y, width, height, escaped(title), style(), hatch, body_);
}

}  // namespace fivecuts
