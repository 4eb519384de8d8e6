// Decodes what ui/replay/packet.py describes.
const NUMBERS_FIRST = ["x_low", "y_low", "scale", "histogram_low", "histogram_high"];

function decodeReplay(bytes) {
  const buffer = bytes.slice().buffer;
  const view = new DataView(buffer);
  const start = view.getUint32(0, true);
  const length = view.getUint32(4, true);
  const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const { points, bins, steps } = about;
  let at = 8 + length + ((4 - (length % 4)) % 4);
  const index = new Uint32Array(buffer, at, points);
  at += 4 * points;
  const labels = new Uint16Array(buffer, at, points);
  at += 2 * points + (points % 2 ? 2 : 0);
  const classOf = []; // by sample, as the map asks for it
  index.forEach((sample, place) => { classOf[sample] = labels[place]; });
  const { classes, labels: whole, unit_circle } = about;
  about.runs.forEach((run, place) => {
    run.hello = { index, classOf, classes, labels: whole, unit_circle, inverted: run.inverted };
    run.frames = steps.map((step, moment) => {
      const frame = { step, points, bins, marks: run.marks[moment] };
      about.spans[place][moment].forEach((value, k) => { frame[NUMBERS_FIRST[k]] = value; });
      frame.xy = new Uint16Array(buffer, at, 2 * points);
      at += 4 * points;
      frame.positive = new Float32Array(buffer, at, bins);
      frame.negative = new Float32Array(buffer, at + 4 * bins, bins);
      at += 8 * bins;
      return frame;
    });
  });
  about.start = Math.max(0, steps.indexOf(start));
  return about;
}
