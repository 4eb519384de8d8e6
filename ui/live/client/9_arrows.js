// Drawings of the forces on the map: the batch as rings, arrows of one point or of all.
const [LONGEST_ARROW, BATCH_ARROW, RING] = [84, 40, 5.5]; // px

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

// Every sample of a batch as a ring of its class's colour; arrows are forces, thin lines the way of the update.
// Returns where the rings are, x and y in turn.
function drawBatch({ ctx, at, theme }, batch, hello, arrows) {
  const screen = new Float32Array(2 * batch.rows);
  const longest = arrows && batch.arrows ? Math.max(...lengths(batch.arrows), 1e-30) : 1;
  batch.xy.forEach((place, row) => {
    const [x, y] = onMap(at, place);
    screen.set([x, y], 2 * row);
    if (arrows && batch.arrows) {
      const [dx, dy] = batch.arrows[row].map((v) => (v / longest) * BATCH_ARROW);
      drawArrow(ctx, x, y, dx, -dy, theme.text, 1.4);
    }
    if (batch.moved && !arrows) {
      const [mx, my] = batch.moved[row];
      drawArrow(ctx, x, y, mx * at.zoom, -my * at.zoom, theme.text, 1.2);
    }
  });
  for (let row = 0; row < batch.rows; row += 1) {
    ctx.beginPath();
    ctx.arc(screen[2 * row], screen[2 * row + 1], RING, 0, 7);
    ctx.lineWidth = 4;
    ctx.strokeStyle = theme.background;
    ctx.stroke();
    ctx.lineWidth = 2.2;
    ctx.strokeStyle = classColour(theme, hello.classOf[batch.samples[row]]);
    ctx.stroke();
  }
  return screen;
}

// The forces on one point: blue pulls, orange pushes, the sum in the text's colour; `chosen` is drawn bold.
function drawForces({ ctx, at, theme }, told, start, chosen) {
  const [x, y] = start || onMap(at, told.xy);
  const parts = told.partners;
  const longest = Math.max(...lengths([...parts.map((partner) => partner.arrow), told.arrow]), 1e-30);
  const scaled = ([dx, dy]) => [(dx / longest) * LONGEST_ARROW, (-dy / longest) * LONGEST_ARROW];
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
  parts.forEach((partner, k) => drawArrow(ctx, x, y, ...scaled(partner.arrow), colourOf(partner), k === chosen ? 3.4 : 1.8));
  const [tx, ty] = scaled(told.arrow);
  drawArrow(ctx, x, y, tx, ty, theme.background, 6.5);
  drawArrow(ctx, x, y, tx, ty, theme.text, 3.2);
  ctx.beginPath();
  ctx.arc(x, y, 9, 0, 7);
  ctx.lineWidth = 2.5;
  ctx.strokeStyle = theme.text;
  ctx.stroke();
  ctx.restore();
}
