// Distances of positive pairs (upwards) and negative pairs (downwards) on one axis, with the loss's marks.
const POSITIVE = 0; // places in the palette
const NEGATIVE = 4;

function binCentres(frame) {
  const width = (frame.histogram_high - frame.histogram_low) / frame.bins;
  return Array.from({ length: frame.bins }, (_, k) => frame.histogram_low + (k + 0.5) * width);
}

function meanOf(counts, centres) {
  const total = counts.reduce((a, b) => a + b, 0);
  return counts.reduce((sum, count, k) => sum + count * centres[k], 0) / total;
}

// How the softmax divides its attention over the negatives: count times exp(-d / tau), per bin, and the
// ends of the band that holds 90 % of it.
function attention(frame, centres, tau, inverted) {
  const exponents = centres.map((d) => (inverted ? d : -d) / tau);
  const used = exponents.filter((_, k) => frame.negative[k] > 0);
  if (!used.length || !(tau > 0)) return null;
  const top = Math.max(...used);
  const curve = exponents.map((e) => Math.min(1, Math.exp(e - top)));
  const weights = curve.map((w, k) => w * frame.negative[k]);
  const total = weights.reduce((a, b) => a + b, 0);
  const order = [...weights.keys()].sort((a, b) => (inverted ? b - a : a - b));
  let carried = 0;
  let last = order[0];
  let first = null;
  for (const k of order) {
    if (weights[k] > 0 && first === null) first = k;
    carried += weights[k];
    last = k;
    if (carried >= 0.9 * total) break;
  }
  return { curve, from: Math.min(first ?? last, last), to: Math.max(first ?? last, last) };
}

class Histogram {
  constructor(canvas) {
    this.canvas = canvas;
  }

  // The bin under the pointer and its side, null where there is none.
  hit(event) {
    const { offsetX: x, offsetY: y } = event;
    const { area, middle, bins } = this.geometry || {};
    if (!area || x < area.left || x >= area.right) return null;
    const bin = Math.floor(((x - area.left) / (area.right - area.left)) * bins);
    return { side: y < middle ? "positive" : "negative", bin };
  }

  draw(frame, hello, theme, selected) {
    const open = openCanvas(this.canvas);
    if (!open) return;
    const { ctx, width, height } = open;
    const area = { left: 8, right: width - 8, top: 32, bottom: height - 34 };
    const middle = (area.top + area.bottom - 32) / 2;
    const [low, high] = [frame.histogram_low, frame.histogram_high];
    const span = high - low || 1;
    const toX = (v) => area.left + ((v - low) / span) * (area.right - area.left);
    const reach = { up: middle - area.top, down: area.bottom - middle - 32 };
    const colours = { positive: classColour(theme, POSITIVE), negative: classColour(theme, NEGATIVE) };
    this.bars(ctx, frame.positive, toX, low, span, middle, -reach.up, colours.positive);
    this.bars(ctx, frame.negative, toX, low, span, middle, reach.down, colours.negative);
    this.geometry = { area, middle, low, high, reach, bins: frame.bins };
    if (selected) drawOnHistogram(ctx, this.geometry, frame, selected, theme);
    this.axis(ctx, area, middle, toX, low, high, hello, theme);
    const centres = binCentres(frame);
    const look = { ctx, area, middle, toX, low, high, theme, colours, reach, labels: [] };
    frame.marks.forEach((mark) => this.mark(mark, frame, hello, centres, look));
    this.names(ctx, area, colours, theme);
  }

  bars(ctx, counts, toX, low, span, base, reach, colour) {
    let tallest = 0;
    for (const count of counts) tallest = Math.max(tallest, count);
    if (tallest === 0) return;
    ctx.fillStyle = colour;
    const wide = span / counts.length;
    for (let k = 0; k < counts.length; k += 1) {
      if (!counts[k]) continue;
      const x = toX(low + k * wide);
      const size = (counts[k] / tallest) * reach;
      ctx.fillRect(x, base, Math.max(1, toX(low + (k + 1) * wide) - x - 0.5), size);
    }
  }

  axis(ctx, area, middle, toX, low, high, hello, theme) {
    ctx.strokeStyle = theme.text;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(area.left, middle);
    ctx.lineTo(area.right, middle);
    ctx.moveTo(area.left, area.bottom);
    ctx.lineTo(area.right, area.bottom);
    withAlpha(ctx, 0.6, () => ctx.stroke());
    ctx.fillStyle = theme.text;
    ctx.font = "11px " + theme.font;
    ctx.textAlign = "center";
    for (const v of niceTicks(low, high, Math.max(3, (area.right - area.left) / 70))) {
      const x = Math.min(area.right - 8, Math.max(area.left + 8, toX(v)));
      ctx.fillText(short(v), x, area.bottom + 13);
    }
    const arrow = hello.inverted ? "closer \u2192" : "\u2190 closer";
    ctx.textAlign = hello.inverted ? "right" : "left";
    ctx.fillText(arrow, hello.inverted ? area.right : area.left, area.bottom + 27);
    const title = hello.inverted ? "similarity" : "distance";
    ctx.textAlign = hello.inverted ? "left" : "right";
    ctx.fillText(title, hello.inverted ? area.left : area.right, area.bottom + 27);
  }

  names(ctx, area, colours, theme) {
    ctx.font = "600 11px " + theme.font;
    ctx.textAlign = "left";
    for (const [text, y] of [["positive pairs", 13], ["negative pairs", area.bottom - 5]]) {
      ctx.fillStyle = theme.text;
      ctx.fillText(text, area.left + 12, y);
      ctx.fillStyle = text === "positive pairs" ? colours.positive : colours.negative;
      ctx.fillRect(area.left, y - 8, 8, 8);
    }
  }

  mark(mark, frame, hello, centres, look) {
    if (mark.kind === "temperature") this.temperature(mark, frame, hello, centres, look);
    else if (mark.kind === "gap") this.gap(mark, frame, hello, centres, look);
    else this.line(mark, look);
  }

  line(mark, look) {
    const { ctx, area, middle, toX, low, high, theme } = look;
    if (mark.value === null) return;
    const top = mark.side === "negative" ? middle : area.top - 2;
    const bottom = mark.side === "positive" ? middle : middle + look.reach.down;
    const beyond = mark.value < low ? -1 : mark.value > high ? 1 : 0;
    const x = Math.min(area.right, Math.max(area.left, toX(mark.value)));
    ctx.save();
    ctx.strokeStyle = theme.text;
    ctx.lineWidth = 2;
    ctx.setLineDash(beyond ? [2, 4] : [6, 3]);
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, bottom);
    ctx.stroke();
    ctx.restore();
    const tail = beyond ? (beyond < 0 ? ", left of this axis" : ", right of this axis") : "";
    this.label(look, mark.label + " " + short(mark.value) + tail, x, mark.side === "negative" ? 1 : -1);
  }

  gap(mark, frame, hello, centres, look) {
    const { ctx, middle, toX, theme } = look;
    const from = meanOf(frame.positive, centres);
    if (!Number.isFinite(from) || mark.value === null) return;
    const x = toX(from);
    const end = toX(hello.inverted ? from - mark.value : from + mark.value);
    ctx.save();
    ctx.strokeStyle = theme.text;
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.moveTo(x, middle - 8);
    ctx.lineTo(x, middle + 8);
    ctx.moveTo(x, middle);
    ctx.lineTo(end, middle);
    ctx.moveTo(end, middle - 8);
    ctx.lineTo(end, middle + 8);
    ctx.stroke();
    ctx.restore();
    this.label(look, mark.label + " " + short(mark.value) + ", from the mean positive", (x + end) / 2, -1);
  }

  temperature(mark, frame, hello, centres, look) {
    const { ctx, middle, toX, low, high, theme, reach } = look;
    const focus = attention(frame, centres, mark.value, hello.inverted);
    if (!focus) return;
    const wide = (high - low) / frame.bins;
    ctx.save();
    ctx.fillStyle = theme.text;
    withAlpha(ctx, 0.12, () => {
      const left = toX(low + focus.from * wide);
      ctx.fillRect(left, middle, toX(low + (focus.to + 1) * wide) - left, reach.down);
    });
    ctx.strokeStyle = theme.text;
    ctx.lineWidth = 2;
    ctx.beginPath();
    centres.forEach((d, k) => {
      const y = middle + focus.curve[k] * reach.down;
      if (k) ctx.lineTo(toX(d), y);
      else ctx.moveTo(toX(d), y);
    });
    ctx.stroke();
    ctx.restore();
    const text = mark.label + " " + short(mark.value) + ": weight of a negative";
    this.label(look, text, toX((low + high) / 2), 1);
  }

  // Labels of the upper half stand above the bars, of the lower half below them.
  label(look, text, x, half) {
    const { ctx, area, middle, theme } = look;
    ctx.font = "11px " + theme.font;
    const wide = ctx.measureText(text).width;
    const rows = look.labels.filter((row) => row === half).length;
    look.labels.push(half);
    const left = Math.max(area.left, Math.min(area.right - wide, x + 5 + wide > area.right ? x - wide - 5 : x + 5));
    const y = half < 0 ? area.top - 6 + 13 * rows : middle + look.reach.down + 12 - 13 * rows;
    ctx.textAlign = "left";
    ctx.lineWidth = 3;
    ctx.strokeStyle = theme.background;
    ctx.strokeText(text, left, y);
    ctx.fillStyle = theme.text;
    ctx.fillText(text, left, y);
  }
}

function marksSentence(frame) {
  const marks = frame.marks.filter((mark) => mark.value !== null);
  const named = marks.map((mark) => mark.label + " " + short(mark.value));
  return "Histograms of positive and negative pairs" + (named.length ? ", drawn on them: " + named.join(", ") : "");
}
