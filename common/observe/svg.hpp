#pragma once
// Pictures as SVG, as small as the project's figures need: boxes, lines and text, legible on light
// and on dark paper, as large as what is drawn. The same calls give the same bytes.
#include <cstddef>
#include <string>
#include <string_view>

namespace fivecuts {

/// Pixels, y downwards.
struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// An upper bound, since a viewer chooses the font: the widths of DejaVu Sans, the widest of the
/// usual ones, and 1 em for a Chinese character.
double text_width(std::string_view text, double size, bool bold = false);

class Svg {
 public:
  /// The colour of boxes: "fill0" to "fill7", then again "fill0". They are chosen to differ for
  /// colour-blind eyes (Paul Tol, "Colour schemes", 2021, scheme "light"), and black text is
  /// legible on all of them.
  static std::string fill(std::size_t index);
  /// Greys for what goes over the wire, "wire0" to "wire3": never like a fill.
  static std::string wire(std::size_t index);
  enum class Align { left, middle, right };
  struct Text {
    double size = 12;
    Align align = Align::left;
    const char* colour = "ink";  ///< "ink", "faint" or, on a fill, "label"
    bool bold = false;
  };

  void box(const Box& box, const std::string& fill);
  /// As box, but pale and hatched.
  void hatched_box(const Box& box, const std::string& fill);
  /// `colour`: "ink", "faint" or "grid".
  void line(double x1, double y1, double x2, double y2, const char* colour);
  /// `y` is the line that the letters stand on.
  void text(double x, double y, std::string_view text, const Text& how);
  /// `text` in the middle of `box`, if it fits; false, and nothing, if not.
  bool label(const Box& box, std::string_view text, double size);
  /// What is drawn between the two shows `tooltip` under the mouse.
  void begin_group(std::string_view tooltip);
  void end_group();

  /// The whole file; `title` names it for those who do not see it.
  std::string document(std::string_view title) const;

 private:
  void rectangle(const Box& box, const std::string& attributes);
  void extend(const Box& box);
  std::string body_;
  bool empty_ = true;
  double left_ = 0, top_ = 0, right_ = 0, bottom_ = 0;
};

}  // namespace fivecuts
