// What is selected, marked in all views at once: points of the map, rows of the batch, pairs of the histograms.
// Kinds: { kind: "class", c }, { kind: "box", samples }, { kind: "pair", anchor, other }, { kind: "bin", side, bin }.
const ASK_AGAIN = 700; // ms between two questions for the pairs of a histogram
const LINKS = 8; // kinds of messages that the panel hands on
const BATCH = 6;

class Selection {
  constructor(panel) {
    this.panel = panel;
    panel.selection = this;
    this.forget();
    panel.map.over.push((scene) => drawSelected(scene, this));
    listenForSelection(this);
  }

  forget() {
    this.what = null;
    this.links = null; // which pairs stand in which bin, of one frame
    this.batch = null; // where the samples of the last batch stand on the map
    this.asked = 0;
  }

  reset(hello) {
    const kept = this.what && this.what.kind === "class" && this.what.c < hello.classes.length ? this.what : null;
    this.forget();
    this.placeOf = new Map(Array.from(hello.index, (sample, place) => [sample, place]));
    this.choose(kept);
  }

  choose(what) {
    this.what = what;
    this.asked = 0;
    this.update();
    this.panel.later();
  }

  get frame() { return this.panel.frames[this.panel.history.at]; }

  // Whether a sample of the data set is part of the selection.
  has(sample) {
    const { what } = this;
    if (!what) return false;
    if (what.kind === "class") return this.panel.hello.classOf[sample] === what.c;
    if (what.kind === "pair") return sample === what.anchor || sample === what.other;
    return what.kind === "box" ? what.samples.has(sample) : Boolean(this.ends && this.ends.has(sample));
  }

  // What follows from the selection and from what the server told.
  update() {
    const { what, panel, links } = this;
    const hello = panel.hello;
    this.ends = what && what.kind === "bin" && links ? endsOf(links, what, hello.index) : null;
    const chosen = what && what.kind !== "pair" && hello;
    panel.map.bright = chosen ? Uint8Array.from(hello.index, (sample) => (this.has(sample) ? 1 : 0)) : null;
    this.bars = chosen && links ? barsOf(links, what, panel.map.bright) : null;
  }

  // A selection needs the pairs of the frame shown, and a pair perhaps the places of training samples.
  ask() {
    const { what, frame, panel } = this;
    const now = performance.now();
    if (!what || !frame || now - this.asked < ASK_AGAIN) return;
    const resting = panel.state.state !== "running";
    const pair = what.kind === "pair";
    const away = pair && resting && !this.onMap(what) && (!this.batch || this.batch.step !== frame.step);
    if (away && this.askedOf !== frame.step) panel.tab.socket.send({ do: "batch" });
    else if (!pair && (!this.links || this.links.step !== frame.step)) {
      panel.tab.socket.send({ do: "links", step: frame.step });
    } else return;
    this.askedOf = pair ? frame.step : null;
    this.asked = now;
  }

  onMap({ anchor, other }) {
    return this.placeOf.has(anchor) && this.placeOf.has(other);
  }

  message(kind, body) {
    if (kind === LINKS) this.links = decodeLinks(body);
    else if (kind === BATCH) this.batch = jsonFrom(new Uint8Array(body));
    else return;
    this.update();
    this.panel.later();
  }

  draw() {
    this.ask();
    const line = this.panel.find("selection");
    line.hidden = !this.what;
    if (this.what) setText(line.querySelector("span"), selectionWords(this));
  }

  // What the heat map marks: rows with a selected sample, and the cell of a pair.
  get onHeat() {
    const { what, frame } = this;
    if (!what) return null;
    if (what.kind === "pair") return { rows: null, cell: cellOf(frame, what) };
    const rows = Uint8Array.from(frame.batchSample, (sample) => (this.has(sample) ? 1 : 0));
    return { rows: rows.includes(1) ? rows : null, cell: null };
  }

  // What the histograms mark: bars of their own, a bin, and the distance of a pair.
  get onHistogram() {
    const { what } = this;
    if (!what) return null;
    const known = what.kind === "pair" ? listedPair(this.frame, what) : null;
    return { bars: this.bars, bin: what.kind === "bin" ? what : null, pair: known };
  }

  key(event) {
    if (event.key !== "Escape" || !this.what) return false;
    this.choose(null);
    return true;
  }
}

PARTS.push((panel) => new Selection(panel));

function decodeLinks(body) {
  const view = new DataView(body);
  const [step, positives, negatives] = [0, 4, 8].map((at) => view.getUint32(at, true));
  const count = positives + negatives;
  const pairs = new Uint16Array(body, 12, 2 * count);
  return { step, positives, count, pairs, bins: new Uint8Array(body, 12 + 4 * count, count) };
}

const isPositive = (links, k) => k < links.positives;

// Samples at the ends of the pairs in a bin.
function endsOf(links, { side, bin }, index) {
  const ends = new Set();
  for (let k = 0; k < links.count; k += 1) {
    if (links.bins[k] !== bin || isPositive(links, k) !== (side === "positive")) continue;
    ends.add(index[links.pairs[2 * k]]).add(index[links.pairs[2 * k + 1]]);
  }
  return ends;
}

// Pairs with an end among the selected points, by bin; none for a bin, which marks itself.
function barsOf(links, what, bright) {
  if (what.kind === "bin") return null;
  const bars = { positive: new Uint32Array(64), negative: new Uint32Array(64), shares: {} };
  const [touched, total] = [{ positive: 0, negative: 0 }, { positive: 0, negative: 0 }];
  for (let k = 0; k < links.count; k += 1) {
    const side = isPositive(links, k) ? "positive" : "negative";
    total[side] += 1;
    if (!bright[links.pairs[2 * k]] && !bright[links.pairs[2 * k + 1]]) continue;
    bars[side][links.bins[k]] += 1;
    touched[side] += 1;
  }
  for (const side of ["positive", "negative"]) bars.shares[side] = touched[side] / total[side];
  return bars;
}

const isPair = (pair, { anchor, other }) =>
  (pair.anchor === anchor && pair.other === other) || (pair.anchor === other && pair.other === anchor);

function listedPair(frame, what) {
  return frame.pairs.find((pair) => isPair(pair, what)) || null;
}

function cellOf(frame, { anchor, other }) {
  const [row, column] = [frame.batchSample.indexOf(anchor), frame.batchSample.indexOf(other)];
  return row < 0 || column < 0 ? null : [row, column];
}
