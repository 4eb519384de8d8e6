// Drawings of the forces on the map: the batch as rings, arrows of one point or of all.
const [SUM_ARROW, PAIR_ARROW, BATCH_ARROW, RING] = [90, 58, 52, 4.5]; // px

function drawArrow(ctx, x, y, dx, dy, colour, width) {
  const length = Math.hypot(dx, dy);
  if (!(length > 0.5)) return;
  const [ux, uy] = [dx / length, dy / length];
  const head = Math.min(length, 3.2 * width + 3);
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.lineWidth = width;
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(x + dx - ux * head * 0.8, y + dy - uy * head * 0.8);
  ctx.stroke();
  ctx.beginPath();
  ctx.moveTo(x + dx, y + dy);
  ctx.lineTo(x + dx - ux * head - uy * head * 0.5, y + dy - uy * head + ux * head * 0.5);
  ctx.lineTo(x + dx - ux * head + uy * head * 0.5, y + dy - uy * head - ux * head * 0.5);
  ctx.fill();
}

const onMap = (at, [x, y]) => [at.left + x * at.zoom, at.top - y * at.zoom];
const lengths = (arrows) => arrows.map(([x, y]) => Math.hypot(x, y));

// What is not talked about steps back.
function veil({ ctx, width, height, theme }) {
  withAlpha(ctx, 0.66, () => {
    ctx.fillStyle = theme.background;
    ctx.fillRect(0, 0, width, height);
  });
}

// Every sample of a batch as a ring of its class's colour; with `arrows` the force on each, else the way of the
// update where it was made. Returns where the rings are, x and y in turn.
function drawBatch({ ctx, at, theme }, batch, hello, arrows) {
  const screen = new Float32Array(2 * batch.rows);
  const forces = arrows && batch.arrows;
  const longest = forces ? Math.max(...lengths(forces), 1e-30) : 1;
  batch.xy.forEach((place, row) => screen.set(onMap(at, place), 2 * row));
  if (!forces && batch.moved) {
    batch.moved.forEach(([mx, my], row) => withAlpha(ctx, 0.6, () =>
      drawArrow(ctx, screen[2 * row], screen[2 * row + 1], mx * at.zoom, -my * at.zoom, theme.text, 1)));
  }
  for (let row = 0; row < batch.rows; row += 1) {
    ctx.beginPath();
    ctx.arc(screen[2 * row], screen[2 * row + 1], RING, 0, 7);
    ctx.lineWidth = 2;
    ctx.strokeStyle = classColour(theme, hello.classOf[batch.samples[row]]);
    ctx.stroke();
  }
  if (forces) {
    forces.forEach(([dx, dy], row) => drawArrow(ctx, screen[2 * row], screen[2 * row + 1],
      (dx / longest) * BATCH_ARROW, (-dy / longest) * BATCH_ARROW, theme.text, 1.4));
  }
  return screen;
}

// The forces on one point: blue pulls, orange pushes, to a scale of their own; the sum in the text's colour, to
// another; `chosen` is drawn bold. Side by side where all lie along one line, as on the unit circle.
function drawForces({ ctx, at, theme }, told, start, chosen, apart) {
  const [x, y] = start || onMap(at, told.xy);
  const parts = told.partners;
  const longest = Math.max(...lengths(parts.map((partner) => partner.arrow)), 1e-30);
  const scaled = ([dx, dy], to, size) => [(dx / to) * size, (-dy / to) * size];
  const sum = Math.hypot(...told.arrow);
  const across = apart && sum ? [told.arrow[1] / sum, told.arrow[0] / sum] : [0, 0];
  const colourOf = (partner) => classColour(theme, partner.closer ? POSITIVE : NEGATIVE);
  ctx.save();
  ctx.setLineDash([3, 3]);
  parts.forEach((partner, k) => {
    const [px, py] = onMap(at, partner.xy);
    ctx.strokeStyle = colourOf(partner);
    ctx.lineWidth = k === chosen ? 2.4 : 1;
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(px, py);
    withAlpha(ctx, k === chosen ? 1 : 0.55, () => ctx.stroke());
  });
  ctx.setLineDash([]);
  parts.forEach((partner, k) => {
    const [px, py] = onMap(at, partner.xy);
    ctx.beginPath();
    ctx.arc(px, py, k === chosen ? 9 : 6.5, 0, 7);
    ctx.lineWidth = k === chosen ? 3.4 : 2;
    ctx.strokeStyle = colourOf(partner);
    ctx.stroke();
  });
  parts.forEach((partner, k) => {
    const aside = (k % 2 ? -1 : 1) * (6 + 3.2 * Math.floor(k / 2));
    const arrow = scaled(partner.arrow, longest, PAIR_ARROW);
    drawArrow(ctx, x + aside * across[0], y + aside * across[1], ...arrow, colourOf(partner), k === chosen ? 3.4 : 1.8);
  });
  const [tx, ty] = scaled(told.arrow, sum || 1, SUM_ARROW);
  drawArrow(ctx, x, y, tx, ty, theme.background, 6.5);
  drawArrow(ctx, x, y, tx, ty, theme.text, 3.2);
  ctx.beginPath();
  ctx.arc(x, y, 9, 0, 7);
  ctx.lineWidth = 2.5;
  ctx.strokeStyle = theme.text;
  ctx.stroke();
  ctx.restore();
}
