// How people select, and how a selection looks on the map, the heat map and the histograms.
function listenForSelection(selection) {
  const { panel } = selection;
  const { map, histogram, heat } = panel;
  const tool = panel.find("select");
  tool.onclick = () => {
    map.selecting = !map.selecting;
    tool.setAttribute("aria-pressed", String(map.selecting));
    map.canvas.style.touchAction = map.selecting ? "none" : "";
  };
  panel.find("clear").onclick = () => { selection.choose(null); panel.root.focus(); };
  map.onBox = (places) => {
    const samples = new Set(places.map((place) => panel.hello.index[place]));
    selection.choose(samples.size ? { kind: "box", samples } : null);
  };
  map.onClass = (c) => {
    const same = selection.what && selection.what.kind === "class" && selection.what.c === c;
    selection.choose(same ? null : { kind: "class", c });
  };
  histogram.canvas.onclick = (event) => chooseBin(selection, histogram.hit(event));
  heat.canvas.onclick = (event) => chooseCell(selection, heat.hit(event));
  histogram.canvas.onkeydown = (event) => move(event, (dx, dy) => chooseBin(selection, nextBin(selection, dx, dy)));
  heat.canvas.onkeydown = (event) => move(event, (dx, dy) => chooseCell(selection, nextCell(selection, dx, dy)));
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function move(event, go) {
  if (!ARROWS[event.key]) return;
  go(...ARROWS[event.key]);
  event.preventDefault();
  event.stopPropagation();
}

function chooseBin(selection, found) {
  const { what } = selection;
  const same = found && what && what.kind === "bin" && what.bin === found.bin && what.side === found.side;
  selection.choose(found && !same ? { kind: "bin", ...found } : null);
}

function chooseCell(selection, cell) {
  const { frame } = selection;
  if (!cell || !frame.rows) selection.choose(null);
  else choosePair(selection, { anchor: frame.batchSample[cell[0]], other: frame.batchSample[cell[1]] });
}

function choosePair(selection, pair) {
  const { what } = selection;
  const same = what && what.kind === "pair" && isPair(pair, what);
  selection.choose(same ? null : { kind: "pair", anchor: pair.anchor, other: pair.other });
}

// From the bin selected to the next one that is not empty; up and down change the side.
function nextBin({ what, panel, frame }, dx, dy) {
  const shown = panel.history.moment(frame);
  const start = what && what.kind === "bin" ? what : { side: "positive", bin: -1 };
  const side = dy < 0 ? "positive" : dy > 0 ? "negative" : start.side;
  if (dy) return { side, bin: Math.max(0, start.bin) };
  for (let bin = start.bin + dx; bin >= 0 && bin < shown.bins; bin += dx) if (shown[side][bin]) return { side, bin };
  return start.bin < 0 ? null : start;
}

function nextCell({ what, frame }, dx, dy) {
  const now = what && what.kind === "pair" && cellOf(frame, what);
  if (!now) return frame.rows > 1 ? [0, 1] : null;
  const inside = (k) => Math.min(frame.rows - 1, Math.max(0, k));
  return [inside(now[0] + dy), inside(now[1] + dx)];
}

// On the map: a pair as two rings and a line. Selected points keep their colour, the others fade (see drawPoints).
function drawSelected(scene, selection) {
  const { ctx, theme, at, screen } = scene;
  const { what, batch, frame, placeOf } = selection;
  if (!what || what.kind !== "pair") return;
  const placed = batch && frame && batch.step === frame.step && batch.xy;
  const ends = [what.anchor, what.other].map((sample) => {
    const place = placeOf.get(sample);
    if (place !== undefined) return [screen[2 * place], screen[2 * place + 1]];
    const row = placed ? batch.samples.indexOf(sample) : -1;
    return row < 0 ? null : [at.left + batch.xy[row][0] * at.zoom, at.top - batch.xy[row][1] * at.zoom];
  });
  if (ends.some((end) => !end || !Number.isFinite(end[0]))) return;
  ctx.save();
  ctx.strokeStyle = theme.text;
  ctx.lineWidth = 2;
  ctx.beginPath();
  ctx.moveTo(...ends[0]);
  ctx.lineTo(...ends[1]);
  ctx.stroke();
  for (const end of ends) {
    ctx.beginPath();
    ctx.arc(...end, 8, 0, 7);
    ctx.stroke();
  }
  ctx.restore();
}

// On the histograms: outlines for the pairs of selected points, a box around a bin, a line for a pair.
function drawOnHistogram(ctx, { area, middle, low, high, reach, bins }, frame, { bars, bin, pair }, theme) {
  const wide = (area.right - area.left) / bins;
  ctx.save();
  ctx.strokeStyle = theme.text;
  ctx.fillStyle = theme.text;
  ctx.lineWidth = 1;
  for (const [side, way] of [["positive", -reach.up], ["negative", reach.down]]) {
    const tallest = Math.max(...frame[side], 1);
    if (bars) {
      bars[side].forEach((count, k) => {
        if (!count) return;
        const box = [area.left + k * wide + 0.5, middle, Math.max(1, wide - 1.5), (count / tallest) * way];
        withAlpha(ctx, 0.45, () => ctx.fillRect(...box));
        ctx.strokeRect(...box);
      });
    }
    ctx.lineWidth = bin ? 2 : 1;
    if (bin && bin.side === side) ctx.strokeRect(area.left + bin.bin * wide - 1, middle, wide + 2, way);
  }
  if (pair && Number.isFinite(pair.value)) {
    const x = area.left + ((pair.value - low) / (high - low || 1)) * (area.right - area.left);
    const end = middle + (pair.positive ? -reach.up : reach.down);
    ctx.lineWidth = 3;
    ctx.beginPath();
    ctx.moveTo(x, middle);
    ctx.lineTo(x, end);
    ctx.stroke();
    ctx.beginPath();
    ctx.arc(x, end, 4, 0, 7);
    ctx.stroke();
  }
  ctx.restore();
}
