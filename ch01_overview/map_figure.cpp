// The placement map as a picture: each card is as wide as the state of a parameter and as high as
// the layers, so that what is filled is what the card holds, to scale.
#include <algorithm>

#include "ch01_overview/experiments.hpp"
#include "common/observe/svg.hpp"
#include "common/support/units.hpp"

namespace fivecuts::overview {
namespace {

constexpr double caption_width = 190, card_height = 112, gap = 14, small = 11;
constexpr int cards_a_line = 8;

double as_double(std::int64_t value) { return static_cast<double>(value); }
std::string gb(std::int64_t bytes) { return show_bytes(as_double(bytes)); }

/// One kind of state: its colour, its part of a holding, and its share of a card's width.
struct Kind {
  const char* name;
  Part Holding::*part;
  double share;
};

struct Picture {
  Svg svg;
  const Options& o;
  std::vector<Kind> kinds;
  double card_width;

  void outline(const Box& b) {
    svg.line(b.x, b.y, b.x + b.width, b.y, "faint");
    svg.line(b.x, b.y + b.height, b.x + b.width, b.y + b.height, "faint");
    svg.line(b.x, b.y, b.x, b.y + b.height, "faint");
    svg.line(b.x + b.width, b.y, b.x + b.width, b.y + b.height, "faint");
  }

  /// The state of one holding in `band`, where its layer is drawn over the card's whole width.
  void holding(const Holding& h, const LayerShape& layer, const Box& band) {
    double x = band.x;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      const double width = band.width * kinds[k].share;
      const Part part = h.*kinds[k].part;
      const double block = as_double(h.rows.count * h.cols.count);
      const double height = band.height * as_double(h.rows.count) / as_double(layer.in);
      const double top = band.y + band.height * as_double(h.rows.first) / as_double(layer.in);
      const Box box{x + width * as_double(h.cols.first) / as_double(layer.out),
                    top + height * as_double(part.first) / block,
                    width * as_double(h.cols.count) / as_double(layer.out),
                    height * as_double(part.count) / block};
      if (part.count > 0) svg.box(box, Svg::fill(k));
      x += width;
    }
  }
};

/// Which layers a panel shows: all where whole layers are placed, else those that the others
/// repeat.
std::size_t layers_shown(Cut cut, const Options& o) {
  const auto all = static_cast<std::size_t>(o.layers);
  switch (cut) {
    case Cut::data:
    case Cut::pipeline:
      return all;
    case Cut::tensor:
      return std::min<std::size_t>(2, all);
    case Cut::expert:
      return static_cast<std::size_t>(o.experts) + 1;
    default:
      return 1;
  }
}

std::string what_is_shown(Cut cut, const Options& o) {
  switch (cut) {
    case Cut::data:
    case Cut::pipeline:
      return fmt::format("shown: {} layers", o.layers);
    case Cut::tensor:
      return o.layers > 1 ? "shown: a pair of layers" : "shown: the layer";
    case Cut::expert:
      return fmt::format("shown: router, {} experts", o.experts);
    default:
      return fmt::format("shown: one layer of {}", o.layers);
  }
}

/// The card of one rank, its name above, its bytes below.
void card(Picture& p, const MapRow& row, const ModelShape& model, double x, double y) {
  const std::size_t shown = layers_shown(row.cut, p.o);
  const double band = card_height / as_double(static_cast<std::int64_t>(shown));
  p.svg.begin_group(fmt::format("{}, rank {}: {} of model state", name_of(row.cut), row.rank,
                                gb(row.account.state())));
  // Layers that lie one upon the other and are whole are one box.
  for (std::size_t i = 0; i < row.placement.size(); ++i) {
    const Holding& h = row.placement[i];
    if (h.layer >= shown) break;
    std::size_t run = 1;
    if (row.cut == Cut::data || row.cut == Cut::pipeline) run = row.placement.size();
    p.holding(h, model[h.layer],
              {x, y + band * as_double(static_cast<std::int64_t>(h.layer)), p.card_width,
               band * as_double(static_cast<std::int64_t>(run))});
    i += run - 1;
  }
  p.outline({x, y, p.card_width, card_height});
  const double middle = x + p.card_width / 2;
  p.svg.text(middle, y - 5, fmt::format("rank {}", row.rank),
             {small, Svg::Align::middle, "faint", false});
  p.svg.text(middle, y + card_height + 15, gb(row.account.state()),
             {12, Svg::Align::middle, "ink", false});
  const std::string rows =
      fmt::format("rows {}..{}", row.rows.first, row.rows.first + row.rows.count - 1);
  if (row.rows.count > 0 && text_width(rows, small) < p.card_width + gap) {
    p.svg.text(middle, y + card_height + 30, rows, {small, Svg::Align::middle, "faint", false});
  }
  p.svg.end_group();
}

void legend(Picture& p, double y) {
  double x = 0;
  for (std::size_t k = 0; k < p.kinds.size(); ++k) {
    p.svg.box({x, y - 10, 12, 12}, Svg::fill(k));
    p.svg.text(x + 18, y, p.kinds[k].name, {12, Svg::Align::left, "ink", false});
    x += 34 + text_width(p.kinds[k].name, 12);
  }
  p.svg.text(x, y, "what is filled is held, its area is its bytes (routers apart)",
             {12, Svg::Align::left, "faint", false});
}

/// The ranks of one cut; returns where the next panel begins.
double panel(Picture& p, const CutFacts& facts, const std::vector<MapRow>& map, double y) {
  const ModelShape model = cut_model(facts.cut, model_of(p.o), static_cast<int>(p.o.experts));
  const double top = y + 22;
  p.svg.text(0, top + 12, facts.name, {14, Svg::Align::left, "ink", true});
  double line = top + 32;
  for (const std::string& text : {fmt::format("cut: {}", facts.what), what_is_shown(facts.cut, p.o),
                                  fmt::format("see {}", facts.shown_in)}) {
    p.svg.text(0, line, text, {small, Svg::Align::left, "faint", false});
    line += 17;
  }
  const double line_height = card_height + 62;
  for (const MapRow& row : map) {
    if (row.cut != facts.cut) continue;
    card(p, row, model, caption_width + (row.rank % cards_a_line) * (p.card_width + gap),
         top + (row.rank / cards_a_line) * line_height);
  }
  const int lines = (static_cast<int>(p.o.parts) - 1) / cards_a_line + 1;
  return y + lines * line_height;
}

}  // namespace

std::string map_svg(const Options& o, const std::vector<MapRow>& map) {
  const Account& whole = map.front().account;  // of the cut by data: all of it
  const auto share = [&](std::int64_t bytes) {
    return as_double(bytes) / as_double(whole.state());
  };
  Picture p{{},
            o,
            {{"parameters", &Holding::parameters, share(whole.parameter)},
             {"gradients", &Holding::gradients, share(whole.gradient)},
             {"optimizer state", &Holding::optimizer, share(whole.optimizer)}},
            o.parts <= 4 ? 128.0 : 88.0};
  const std::string title =
      fmt::format("{} layers of {} x {} on {} rank{}: {} of model state in {}", o.layers, o.width,
                  o.width, o.parts, o.parts == 1 ? "" : "s", gb(whole.state()), o.recipe.name);
  p.svg.text(0, 0, title, {15, Svg::Align::left, "ink", true});
  legend(p, 24);
  double y = 40;
  for (const CutFacts& facts : all_cuts()) y = panel(p, facts, map, y);
  return p.svg.document(title);
}

}  // namespace fivecuts::overview
