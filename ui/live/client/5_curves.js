// Curves over steps: the loss on its own scale, quality between 0 and 1, events as marks, a cursor.
class Curves {
  constructor(canvas) {
    this.canvas = canvas;
  }

  // series: [{ name, values: [[step, value], ...], colour, dash }]; fixed: [low, high] or null.
  draw(series, theme, { total, cursor, events, fixed, level }) {
    const open = openCanvas(this.canvas);
    if (!open) return;
    const { ctx, width, height } = open;
    const known = series.flatMap((s) => s.values.map((v) => v[1]).filter(Number.isFinite));
    const last = Math.max(total || 1, ...series.map((s) => (s.values.length ? s.values.at(-1)[0] : 0)));
    let [low, high] = fixed || [Math.min(0, ...known), Math.max(0, ...known)];
    if (!(high > low)) high = low + 1;
    const bottom = height - 20;
    const ticks = niceTicks(low, high, Math.max(2, (bottom - 8) / 40));
    ctx.font = "11px " + theme.font;
    const widest = Math.max(...ticks.map((v) => ctx.measureText(short(v)).width));
    const area = { left: Math.max(24, widest + 9), right: width - 6, top: 8, bottom };
    const toX = (step) => area.left + (step / last) * (area.right - area.left);
    const toY = (v) => area.bottom - ((v - low) / (high - low)) * (area.bottom - area.top);
    this.frame(ctx, area, toX, toY, ticks, last, theme);
    this.events(ctx, area, toX, events, theme);
    if (level !== undefined && level !== null) this.level(ctx, area, toY(level), theme);
    series.forEach((line) => this.line(ctx, line, toX, toY));
    ctx.strokeStyle = theme.text;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(toX(cursor), area.top);
    ctx.lineTo(toX(cursor), area.bottom);
    withAlpha(ctx, 0.5, () => ctx.stroke());
  }

  frame(ctx, area, toX, toY, ticks, last, theme) {
    ctx.fillStyle = theme.text;
    ctx.strokeStyle = theme.border;
    ctx.lineWidth = 1;
    ctx.textAlign = "right";
    ctx.beginPath();
    for (const v of ticks) {
      ctx.moveTo(area.left, toY(v));
      ctx.lineTo(area.right, toY(v));
      ctx.fillText(short(v), area.left - 4, toY(v) + 4);
    }
    ctx.stroke();
    ctx.textAlign = "center";
    for (const step of niceTicks(0, last, Math.max(2, (area.right - area.left) / 80))) {
      const text = step === 0 ? "step 0" : String(step);
      ctx.fillText(text, Math.max(area.left + 14, Math.min(area.right - 10, toX(step))), area.bottom + 14);
    }
  }

  line(ctx, line, toX, toY) {
    const points = line.values.filter((v) => Number.isFinite(v[1]));
    ctx.save();
    ctx.strokeStyle = line.colour;
    ctx.fillStyle = line.colour;
    ctx.lineWidth = 2;
    ctx.setLineDash(line.dash || []);
    ctx.beginPath();
    points.forEach(([step, value], k) => {
      if (k) ctx.lineTo(toX(step), toY(value));
      else ctx.moveTo(toX(step), toY(value));
    });
    ctx.stroke();
    if (points.length) {
      ctx.beginPath();
      ctx.arc(toX(points.at(-1)[0]), toY(points.at(-1)[1]), 3, 0, 7);
      ctx.fill();
    }
    ctx.restore();
  }

  level(ctx, area, y, theme) {
    ctx.save();
    ctx.setLineDash([2, 4]);
    ctx.strokeStyle = theme.text;
    ctx.beginPath();
    ctx.moveTo(area.left, y);
    ctx.lineTo(area.right, y);
    withAlpha(ctx, 0.7, () => ctx.stroke());
    ctx.fillStyle = theme.text;
    ctx.textAlign = "right";
    ctx.font = "11px " + theme.font;
    ctx.fillText("chance", area.right, y - 3);
    ctx.restore();
  }

  events(ctx, area, toX, events, theme) {
    ctx.save();
    ctx.strokeStyle = theme.text;
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    for (const event of events || []) {
      ctx.moveTo(toX(event.step), area.top);
      ctx.lineTo(toX(event.step), area.bottom);
    }
    withAlpha(ctx, 0.5, () => ctx.stroke());
    ctx.restore();
  }
}

const over = (frames, name) => frames.map((frame) => [frame.step, frame[name]]);

function latestWith(frames, name, upTo) {
  for (let k = upTo; k >= 0; k -= 1) if (Number.isFinite(frames[k][name])) return frames[k];
  return null;
}
