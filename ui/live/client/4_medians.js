// What a histogram lets one say about medians: the bins know a distance no better than their width.

// The bin that holds the median, its ends, and the place inside by cumulative counts. `coarse` is true where
// that place means little: in the outermost bins, and in one that holds most of the pairs.
function medianOf(frame, counts) {
  const total = counts.reduce((a, b) => a + b, 0);
  const width = (frame.histogram_high - frame.histogram_low) / frame.bins;
  let seen = 0;
  let bin = 0;
  while (bin < counts.length - 1 && seen + counts[bin] < total / 2) { seen += counts[bin]; bin += 1; }
  const part = total ? (total / 2 - seen) / counts[bin] : NaN;
  const from = frame.histogram_low + bin * width;
  const coarse = bin === 0 || bin === counts.length - 1 || counts[bin] > total / 2;
  return { total, bin, part, from, to: from + width, width, value: from + part * width, coarse };
}

// Rounded outwards to two digits, so that "below" and "above" stay true.
function bound(value, width, up) {
  const unit = 10 ** (Math.floor(Math.log10(width)) - 1);
  const steps = value / unit;
  return short((up ? Math.ceil(steps - 1e-6) : Math.floor(steps + 1e-6)) * unit);
}

function medianWords(frame, { bin, from, to, width, value, coarse }) {
  if (bin === 0) return "below " + bound(to, width, true);
  if (bin === frame.bins - 1) return "above " + bound(from, width, false);
  if (coarse) return "between " + bound(from, width, false) + " and " + bound(to, width, true);
  const unit = 10 ** Math.floor(Math.log10(width));
  return short(Math.round(value / unit) * unit);
}

// The share of negative pairs at least as close as the median positive pair. Negatives of the median's own bin
// count in part; `least` and `most` leave all of them out and take all of them in.
function closerNegatives(frame, median, inverted) {
  let [closer, total] = [0, 0];
  for (let k = 0; k < frame.bins; k += 1) {
    total += frame.negative[k];
    if (inverted ? k > median.bin : k < median.bin) closer += frame.negative[k];
  }
  const own = frame.negative[median.bin];
  const part = inverted ? 1 - median.part : median.part;
  return { least: closer / total, share: (closer + part * own) / total, most: (closer + own) / total };
}

function closerWords(frame, median, inverted) {
  const { least, share, most } = closerNegatives(frame, median, inverted);
  if (median.coarse && most - least > 0.9) return "they share a bin, which cannot tell which are closer.";
  let words = percent(share);
  if (median.coarse && most - least > 0.01) {
    words = least >= 0.01 ? "between " + percent(least) + " and " + percent(most) : "at most " + percent(most);
  }
  return words + " of negative pairs are at least as close as the median positive.";
}

function histogramSummary(frame, hello) {
  const near = medianOf(frame, frame.positive);
  const far = medianOf(frame, frame.negative);
  if (!near.total && !far.total) return "There are no pairs to measure.";
  if (!near.total) return "There are no positive pairs: no class has two samples here.";
  if (!far.total) return "There are no negative pairs: all samples belong to one class.";
  const word = hello.inverted ? "similarity" : "distance";
  return "Median " + word + " of positive pairs " + medianWords(frame, near) + ", of negative pairs " +
    medianWords(frame, far) + "; " + closerWords(frame, near, hello.inverted);
}
