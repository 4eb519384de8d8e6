// Decodes the packets that ui/live/wire.py describes.
const VERSION = 1;
const KIND = { hello: 1, frame: 2, state: 3, images: 4, glance: 5 };
const NUMBERS = [
  "loss", "active_share", "recall_at_1", "map_at_r", "alignment", "uniformity", "spread", "effective_rank",
  "mean_cosine", "gradient_norm", "learning_rate", "x_low", "y_low", "scale", "histogram_low", "histogram_high",
];
const TEXT = new TextDecoder();

function jsonFrom(bytes) {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end -= 1;
  return JSON.parse(TEXT.decode(bytes.subarray(0, end)));
}

const padded = (length) => length + ((4 - (length % 4)) % 4);

// A packet as a list of { kind, epoch, ... }. Throws on a version this client does not know.
function decodePacket(buffer) {
  const view = new DataView(buffer);
  const messages = [];
  let at = 0;
  while (at + 8 <= buffer.byteLength) {
    if (view.getUint8(at) !== VERSION) throw new Error("unknown wire version " + view.getUint8(at));
    const kind = view.getUint8(at + 1);
    const epoch = view.getUint16(at + 2, true);
    const length = view.getUint32(at + 4, true);
    const body = buffer.slice(at + 8, at + 8 + length);
    messages.push({ kind, epoch, body });
    at += 8 + length;
  }
  return messages;
}

function decodeHello(body) {
  const length = new DataView(body).getUint32(0, true);
  const about = jsonFrom(new Uint8Array(body, 4, length));
  let at = 4 + padded(length);
  about.index = new Uint32Array(body, at, about.points);
  at += 4 * about.points;
  about.classOf = new Uint16Array(body, at, about.samples);
  return about;
}

function decodeFrame(body) {
  const view = new DataView(body);
  const frame = {
    step: view.getUint32(0, true),
    points: view.getUint32(4, true),
    rows: view.getUint32(8, true),
    bins: view.getUint32(12, true),
    sent: view.getFloat64(80, true),
  };
  NUMBERS.forEach((name, place) => { frame[name] = view.getFloat32(16 + 4 * place, true); });
  let at = 88;
  frame.positive = new Float32Array(body, at, frame.bins);
  at += 4 * frame.bins;
  frame.negative = new Float32Array(body, at, frame.bins);
  at += 4 * frame.bins;
  frame.xy = new Uint16Array(body, at, 2 * frame.points);
  at += 4 * frame.points;
  frame.batchSample = new Uint32Array(body, at, frame.rows);
  at += 4 * frame.rows;
  frame.batchClass = new Uint16Array(body, at, frame.rows);
  at += 2 * frame.rows;
  frame.weights = new Uint8Array(body, at, frame.rows * frame.rows);
  at += frame.rows * frame.rows;
  return Object.assign(frame, jsonFrom(new Uint8Array(body, padded(at))));
}

// Only what moves: the fields are those of a frame.
function decodeGlance(body) {
  const view = new DataView(body);
  const [step, points, bins] = [0, 4, 8].map((at) => view.getUint32(at, true));
  const glance = { step, points, bins, sent: view.getFloat64(32, true) };
  const numbers = ["x_low", "y_low", "scale", "histogram_low", "histogram_high"];
  numbers.forEach((name, place) => { glance[name] = view.getFloat32(12 + 4 * place, true); });
  glance.positive = new Float32Array(body, 40, bins);
  glance.negative = new Float32Array(body, 40 + 4 * bins, bins);
  glance.xy = new Uint16Array(body, 40 + 8 * bins, 2 * points);
  return glance;
}

const decodeState = (body) => jsonFrom(new Uint8Array(body));

async function decodeImages(body) {
  const view = new DataView(body);
  const [count, height, width, length] = [0, 4, 8, 12].map((at) => view.getUint32(at, true));
  const squeezed = new Blob([new Uint8Array(body, 16, length)]).stream();
  const plain = await new Response(squeezed.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
  return { count, height, width, pixels: new Uint8Array(plain) };
}
