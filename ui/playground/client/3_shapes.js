// Marker shapes of the classes as SVG paths around 0, the same ones that the maps draw.
const NAMES = "ABCDEFGH";
const OUTLINED = ["cross", "times", "ring"];

function corners(r, count, turn, inner) {
  const total = inner ? count * 2 : count;
  const parts = Array.from({ length: total }, (_, k) => {
    const reach = inner && k % 2 ? r * inner : r;
    const angle = turn + (2 * Math.PI * k) / total;
    return `${(reach * Math.cos(angle)).toFixed(2)} ${(reach * Math.sin(angle)).toFixed(2)}`;
  });
  return `M${parts.join("L")}Z`;
}

function shapePath(shape, r) {
  const round = (q) => `M${-q} 0A${q} ${q} 0 1 1 ${q} 0A${q} ${q} 0 1 1 ${-q} 0Z`;
  const d = r * 0.75;
  const paths = {
    circle: round(r),
    ring: round(r * 0.8),
    square: `M${-r * 0.85} ${-r * 0.85}H${r * 0.85}V${r * 0.85}H${-r * 0.85}Z`,
    triangle: corners(r * 1.2, 3, -Math.PI / 2),
    wedge: corners(r * 1.2, 3, Math.PI / 2),
    diamond: corners(r * 1.2, 4, 0),
    hexagon: corners(r * 1.1, 6, 0),
    star: corners(r * 1.35, 5, -Math.PI / 2, 0.45),
    cross: `M${-r} 0H${r}M0 ${-r}V${r}`,
    times: `M${-d} ${-d}L${d} ${d}M${-d} ${d}L${d} ${-d}`,
  };
  return paths[shape];
}

// A coordinate as links spell it: three decimals, no more digits than it needs.
const tidy = (value) => String(Number(value.toFixed(3)) + 0);
const pointsText = (points) => points.map((p) => `${tidy(p.x)}~${tidy(p.y)}~${p.c + 1}`).join("_");

function parsePoints(text) {
  return text.split("_").map((part) => {
    const [x, y, c] = part.split("~").map(Number);
    return { x, y, c: c - 1 };
  });
}

function toUnit(point) {
  const size = Math.hypot(point.x, point.y);
  return size > 1e-12 ? { ...point, x: point.x / size, y: point.y / size } : { ...point, x: 1, y: 0 };
}

const REACH = 2;
const within = (value) => Math.max(-REACH, Math.min(REACH, value));
const settle = (point, space) => (space === "circle" ? toUnit(point) : { ...point, x: within(point.x), y: within(point.y) });
