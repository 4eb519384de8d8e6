// Who carries the loss: the batch as a heat map ordered by class, and the heaviest pairs ranked.
class PairHeat {
  constructor(canvas) {
    this.canvas = canvas;
  }

  draw(frame, theme) {
    const open = openCanvas(this.canvas);
    if (!open) return;
    const { ctx, width, height } = open;
    const rows = frame.rows;
    if (!rows) return;
    const side = Math.min(width, height);
    const left = (width - side) / 2;
    if (!this.cells || this.cells.width !== rows) {
      this.cells = document.createElement("canvas");
      this.cells.width = rows;
      this.cells.height = rows;
    }
    this.paint(frame, theme);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(this.cells, left, 0, side, side);
    ctx.strokeStyle = theme.border;
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (let k = 1; k < rows; k += 1) {
      if (frame.batchClass[k] === frame.batchClass[k - 1]) continue;
      const at = (k / rows) * side;
      ctx.moveTo(left + at, 0);
      ctx.lineTo(left + at, side);
      ctx.moveTo(left, at);
      ctx.lineTo(left + side, at);
    }
    ctx.stroke();
    ctx.strokeRect(left + 0.5, 0.5, side - 1, side - 1);
  }

  // Blue pulls (same class), orange pushes; strength is the share of the heaviest pair, square-rooted to be seen.
  paint(frame, theme) {
    const ctx = this.cells.getContext("2d");
    const picture = ctx.createImageData(frame.rows, frame.rows);
    const [base, pull, push] = [theme.background, classColour(theme, POSITIVE), classColour(theme, NEGATIVE)].map(rgb);
    for (let i = 0; i < frame.rows; i += 1) {
      for (let j = 0; j < frame.rows; j += 1) {
        const cell = i * frame.rows + j;
        const strength = Math.sqrt(frame.weights[cell] / 255);
        const ink = frame.batchClass[i] === frame.batchClass[j] ? pull : push;
        for (let c = 0; c < 3; c += 1) picture.data[4 * cell + c] = base[c] + (ink[c] - base[c]) * strength;
        picture.data[4 * cell + 3] = 255;
      }
    }
    ctx.putImageData(picture, 0, 0);
  }
}

const LISTED = 10;
const COLOURS = new Map();
function rgb(colour) {
  if (!COLOURS.has(colour)) {
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = colour;
    probe.fillRect(0, 0, 1, 1);
    COLOURS.set(colour, [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3));
  }
  return COLOURS.get(colour);
}

function pairsSummary(frame) {
  if (!frame.pairs.length) return "No pair of this batch carries any loss.";
  const listed = frame.pairs.slice(0, LISTED);
  const carried = listed.reduce((sum, pair) => sum + (pair.share || 0), 0);
  return "The " + listed.length + " heaviest pairs carry " + percent(carried) + " of the batch's pair weight.";
}

function drawPairs(list, frame, hello, images) {
  const word = hello.inverted ? "similarity " : "distance ";
  list.replaceChildren(...frame.pairs.slice(0, LISTED).map((pair) => {
    const row = document.createElement("li");
    if (images) row.append(thumbnail(images, pair.anchor, 28), thumbnail(images, pair.other, 28));
    const name = (sample) => hello.classes[hello.classOf[sample]];
    const text = document.createElement("span");
    text.textContent = (pair.positive ? "pulled: " : "pushed: ") + name(pair.anchor) + " and " + name(pair.other) +
      ", " + word + short(pair.value);
    const share = document.createElement("span");
    share.className = "share";
    share.textContent = short(100 * pair.share) + " %";
    row.append(text, share);
    return row;
  }));
}
