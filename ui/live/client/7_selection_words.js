// The selection in words.
const counted = (count, one, many) => count + " " + (count === 1 ? one : many);

function selectionWords(selection) {
  const { what, panel } = selection;
  if (what.kind === "pair") return "Selected: " + pairWords(selection);
  if (what.kind === "bin") return "Selected: " + binWords(selection);
  const { hello } = panel;
  const places = Array.from(hello.index).filter((sample) => selection.has(sample));
  const named = what.kind === "class" ? "class " + hello.classes[what.c] + ", " : "";
  return "Selected: " + named + counted(places.length, "point", "points") + " of the map" +
    (what.kind === "box" && places.length ? " (" + classesOf(places, hello) + ")" : "") + " and " + rowWords(selection) +
    shareOfPairs(selection);
}

function classesOf(samples, hello) {
  const counts = new Map();
  samples.forEach((sample) => counts.set(hello.classOf[sample], (counts.get(hello.classOf[sample]) || 0) + 1));
  const ranked = [...counts].sort((a, b) => b[1] - a[1]);
  const words = ranked.slice(0, 4).map(([c, count]) => count + " of class " + hello.classes[c]);
  return words.join(", ") + (ranked.length > 4 ? ", others" : "");
}

function rowWords(selection) {
  const rows = selection.frame.batchSample.reduce((sum, sample) => sum + (selection.has(sample) ? 1 : 0), 0);
  return rows ? counted(rows, "row", "rows") + " of the batch." : "no row of the batch, which is drawn from training data.";
}

function shareOfPairs({ bars, links, frame }) {
  if (!links) return "";
  if (!bars || !links.count) return " Its pairs are not known: the histograms do not compare points of the map.";
  const when = links.step === frame.step ? "" : ", at step " + links.step;
  const sides = ["positive", "negative"].filter((side) => Number.isFinite(bars.shares[side]))
    .map((side) => percent(bars.shares[side]) + " of the " + side + " pairs");
  return " It has an end of " + sides.join(" and ") + " (outlined" + when + ").";
}

function sampleName(sample, hello) {
  return hello.classes[hello.classOf[sample]] + ", sample " + sample;
}

function pairWords(selection) {
  const { what, panel, frame, batch } = selection;
  const { hello } = panel;
  if (what.anchor === what.other) return sampleName(what.anchor, hello) + " and itself: the diagonal, which is no pair.";
  const known = listedPair(frame, what);
  const word = hello.inverted ? "similarity " : "distance ";
  const worth = known ? (known.positive ? "positive" : "negative") + ", " + word + short(known.value) + ", " +
    short(100 * known.share) + " % of the batch's pair weight"
    : "not among the heaviest pairs, so its " + word.trim() + " was not sent";
  const placed = batch && batch.step === frame.step && batch.xy;
  const where = selection.onMap(what) ? "Both are marked on the map."
    : placed ? "Training samples: their places before the update are marked on the map."
      : "They are training samples; the map shows other ones.";
  return sampleName(what.anchor, hello) + " and " + sampleName(what.other, hello) + ": " + worth + ". " + where;
}

function binWords({ what, panel, ends, links, frame }) {
  const { hello } = panel;
  const width = (frame.histogram_high - frame.histogram_low) / frame.bins;
  const from = frame.histogram_low + what.bin * width;
  const count = frame[what.side][what.bin];
  const place = (hello.inverted ? "similarity " : "distance ") + short(from) + " to " + short(from + width);
  const pairs = counted(count, what.side + " pair", what.side + " pairs") + " at " + place;
  if (!links) return pairs + ".";
  if (!links.count) return pairs + ". Their points are not known: the histograms do not compare points of the map.";
  return pairs + "; " + counted(ends.size, "point", "points") + " at their ends stand out on the map.";
}
