// Colours and fonts of the page's theme, marker shapes, and canvases that are sharp on every screen.
const SHAPES = [
  "circle", "square", "triangle", "cross", "diamond", "ring", "wedge", "star", "times", "hexagon",
];

function readTheme(element) {
  const style = getComputedStyle(element);
  const read = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
  const palette = read("--st-chart-categorical-colors", "").split(",").map((c) => c.trim()).filter(Boolean);
  return {
    text: read("--st-text-color", "#1b1f24"),
    background: read("--st-background-color", "#ffffff"),
    surface: read("--st-secondary-background-color", "#f4f6f8"),
    border: read("--st-border-color", "#d5dae0"),
    primary: read("--st-primary-color", "#0072b2"),
    font: read("--st-font", "sans-serif"),
    palette: palette.length ? palette : ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00"],
  };
}

const classColour = (theme, c) => theme.palette[c % theme.palette.length];
const classShape = (c) => SHAPES[c % SHAPES.length];

function polygon(ctx, x, y, r, corners, turn, inner) {
  ctx.beginPath();
  const count = inner ? corners * 2 : corners;
  for (let k = 0; k < count; k += 1) {
    const reach = inner && k % 2 ? r * inner : r;
    const angle = turn + (2 * Math.PI * k) / count;
    ctx.lineTo(x + reach * Math.cos(angle), y + reach * Math.sin(angle));
  }
  ctx.closePath();
}

function strokes(ctx, x, y, r, turn) {
  ctx.beginPath();
  for (const angle of [turn, turn + Math.PI / 2]) {
    ctx.moveTo(x - r * Math.cos(angle), y - r * Math.sin(angle));
    ctx.lineTo(x + r * Math.cos(angle), y + r * Math.sin(angle));
  }
}

function drawShape(ctx, shape, x, y, r, colour, halo) {
  ctx.fillStyle = colour;
  ctx.lineJoin = "round";
  const outlined = shape === "cross" || shape === "times" || shape === "ring";
  if (shape === "circle") { ctx.beginPath(); ctx.arc(x, y, r, 0, 7); }
  else if (shape === "ring") { ctx.beginPath(); ctx.arc(x, y, r * 0.85, 0, 7); }
  else if (shape === "square") { ctx.beginPath(); ctx.rect(x - r * 0.85, y - r * 0.85, r * 1.7, r * 1.7); }
  else if (shape === "triangle") polygon(ctx, x, y, r * 1.2, 3, -Math.PI / 2);
  else if (shape === "wedge") polygon(ctx, x, y, r * 1.2, 3, Math.PI / 2);
  else if (shape === "diamond") polygon(ctx, x, y, r * 1.2, 4, 0);
  else if (shape === "hexagon") polygon(ctx, x, y, r * 1.1, 6, 0);
  else if (shape === "star") polygon(ctx, x, y, r * 1.35, 5, -Math.PI / 2, 0.45);
  else strokes(ctx, x, y, r * 1.1, shape === "cross" ? 0 : Math.PI / 4);
  ctx.strokeStyle = halo;
  ctx.lineWidth = outlined ? r * 0.62 + 1.6 : 1;
  ctx.stroke();
  if (outlined) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = r * 0.62;
    ctx.stroke();
  } else {
    ctx.fill();
  }
}

// One small picture a class: drawing 2,000 pictures is several times cheaper than 2,000 paths.
function makeSprites(theme, classes, radius, ratio) {
  return Array.from({ length: classes }, (_, c) => {
    const size = Math.ceil((radius * 1.5 + 2) * 2 * ratio);
    const canvas = new OffscreenCanvas(size, size);
    const ctx = canvas.getContext("2d");
    ctx.scale(ratio, ratio);
    const middle = size / ratio / 2;
    drawShape(ctx, classShape(c), middle, middle, radius, classColour(theme, c), theme.background);
    return { picture: canvas.transferToImageBitmap(), size: size / ratio };
  });
}

// A 2-D context in CSS pixels, cleared; null while the element has no size.
function openCanvas(canvas) {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (!width || !height) return null;
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const ctx = canvas.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return { ctx, width, height, ratio };
}

function withAlpha(ctx, alpha, draw) {
  const before = ctx.globalAlpha;
  ctx.globalAlpha = alpha;
  draw();
  ctx.globalAlpha = before;
}

// Round numbers for axis marks, about `wanted` of them between low and high.
function niceTicks(low, high, wanted) {
  if (!(high > low)) return [low];
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || 10 * power;
  const ticks = [];
  for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + step * 1e-9; t += step) {
    ticks.push(Math.abs(t) < step * 1e-6 ? 0 : t);
  }
  return ticks;
}

function short(value) {
  if (value === null || !Number.isFinite(value)) return "not measured";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e5)) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

function percent(share) {
  if (!Number.isFinite(share)) return "not measured";
  return share > 0 && share < 0.01 ? "less than 1 %" : Math.round(100 * share) + " %";
}
