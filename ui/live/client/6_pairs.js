// Who carries the loss: the batch as a heat map ordered by class, and the heaviest pairs ranked.
class PairHeat {
  constructor(canvas) {
    this.canvas = canvas;
  }

  // The cell under the pointer as [row, column], null where there is none.
  hit({ offsetX: x, offsetY: y }) {
    const { left, side, rows } = this.geometry || {};
    const cell = [y, x - left].map((along) => Math.floor((along / side) * rows));
    return cell.every((k) => k >= 0 && k < rows) ? cell : null;
  }

  draw(frame, theme, selected) {
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
    this.geometry = { left, side, rows };
    this.paint(frame, theme, selected ? selected.rows : null);
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
    if (selected && selected.cell) this.outline(ctx, left, side / rows, selected.cell, theme);
  }

  // Blue pulls (a positive pair), orange pushes; strength is the share of the heaviest pair, square-rooted to be seen.
  // A selection keeps the rows and columns of its samples, the others fade.
  paint(frame, theme, chosen) {
    const ctx = this.cells.getContext("2d");
    const picture = ctx.createImageData(frame.rows, frame.rows);
    const [base, pull, push] = [theme.background, classColour(theme, POSITIVE), classColour(theme, NEGATIVE)].map(rgb);
    for (let i = 0; i < frame.rows; i += 1) {
      for (let j = 0; j < frame.rows; j += 1) {
        const cell = i * frame.rows + j;
        const strength = Math.sqrt(frame.weights[cell] / 255);
        const ink = areTogether(frame, i, j) ? pull : push;
        for (let c = 0; c < 3; c += 1) picture.data[4 * cell + c] = base[c] + (ink[c] - base[c]) * strength;
        picture.data[4 * cell + 3] = !chosen || chosen[i] || chosen[j] ? 255 : 40;
      }
    }
    ctx.putImageData(picture, 0, 0);
  }

  // Both cells of a pair, never smaller than can be seen.
  outline(ctx, left, size, [row, column], theme) {
    const wide = Math.max(7, size + 2);
    ctx.strokeStyle = theme.text;
    ctx.lineWidth = 2;
    for (const [i, j] of [[row, column], [column, row]]) {
      ctx.strokeRect(left + (j + 0.5) * size - wide / 2, (i + 0.5) * size - wide / 2, wide, wide);
    }
  }
}

// Whether two rows of the batch are a positive pair by the run's rule of pairing.
function areTogether(frame, i, j) {
  const { reach, batchClass } = frame;
  return reach ? j >= reach[2 * i] && j < reach[2 * i + 1] : batchClass[i] === batchClass[j];
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

function pairsSummary(frame, hello) {
  if (hello && hello.pairwise === false) {
    return "This loss is no function of pairs, so there are no pair weights to show.";
  }
  if (!frame.pairs.length) return "No pair of this batch carries any loss.";
  const listed = frame.pairs.slice(0, LISTED);
  const carried = listed.reduce((sum, pair) => sum + (pair.share || 0), 0);
  const words = "The " + listed.length + " heaviest pairs carry " + percent(carried) + " of the batch's pair weight.";
  return frame.weights.some(Boolean) ? words : words + " A run file keeps the weights of all pairs at some steps only.";
}

// The list is made anew only when it says something else, so that the focus stays on its buttons.
function drawPairs(list, frame, hello, images, selection) {
  if (list.shows !== frame || list.pictures !== images) {
    Object.assign(list, { shows: frame, pictures: images });
    list.replaceChildren(...frame.pairs.slice(0, LISTED).map((pair) => pairRow(pair, hello, images, selection)));
  }
  const { what } = selection;
  [...list.querySelectorAll("button")].forEach((button, k) => {
    const chosen = what && what.kind === "pair" && isPair(frame.pairs[k], what);
    button.setAttribute("aria-pressed", String(Boolean(chosen)));
  });
}

function pairRow(pair, hello, images, selection) {
  const word = hello.inverted ? "similarity " : "distance ";
  const row = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "pair";
  button.title = "Select this pair in all views";
  if (images) button.append(thumbnail(images, pair.anchor, 28), thumbnail(images, pair.other, 28));
  const name = (sample) => hello.classes[hello.classOf[sample]];
  const text = document.createElement("span");
  text.textContent = (pair.positive ? "pulled: " : "pushed: ") + name(pair.anchor) + " and " + name(pair.other) +
    ", " + word + short(pair.value);
  const share = document.createElement("span");
  share.className = "share";
  share.textContent = short(100 * pair.share) + " %";
  button.append(text, share);
  button.onclick = () => choosePair(selection, pair);
  row.append(button);
  return row;
}
