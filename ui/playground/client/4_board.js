// One loss's picture of the points: regions, margin, lines, arrows, and the points themselves on top.
const SVG = "http://www.w3.org/2000/svg";
const SIDE = 400;
const HALF = { plane: 2.15, circle: 1.6 };
const POINT = 8;
let boardsMade = 0;

function svg(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
}

class LossBoard {
  constructor(place, first) {
    this.id = `hatch${(boardsMade += 1)}`;
    this.tabs = first; // keys reach the points of the first board; the others follow the pointer
    this.figure = document.createElement("figure");
    this.figure.innerHTML =
      '<figcaption><span class="title"></span><span class="value">...</span></figcaption>' +
      '<p class="closeness"><b class="which"></b> <span class="more"></span></p><svg class="board" viewBox="0 0 400 400" role="group"></svg>' +
      '<p class="summary words"></p><p class="summary free"></p>';
    place.append(this.figure);
    this.find = (name) => this.figure.querySelector("." + name);
    this.svg = this.find("board");
    const defs = svg("defs", {}, this.svg);
    const hatch = svg("pattern",
      { id: this.id, width: 8, height: 8, patternUnits: "userSpaceOnUse", patternTransform: "rotate(35)" }, defs);
    svg("path", { class: "hatch", d: "M0 0V8" }, hatch);
    this.back = svg("g", { "aria-hidden": "true" }, this.svg); // drawn anew only when a region comes or goes
    this.under = svg("g", { "aria-hidden": "true" }, this.svg);
    this.points = svg("g", {}, this.svg);
    this.dots = [];
  }

  x(value) { return (SIDE / 2) * (1 + value / this.half); }
  y(value) { return (SIDE / 2) * (1 - value / this.half); }

  // The place of a pointer event in the picture's own coordinates.
  locate(event) {
    const box = this.svg.getBoundingClientRect();
    return {
      x: (((event.clientX - box.left) / box.width) * 2 - 1) * this.half,
      y: (1 - ((event.clientY - box.top) / box.height) * 2) * this.half,
    };
  }

  draw(config, answer, region, theme) {
    this.half = HALF[config.space];
    if (this.ground !== config.space || this.region !== region) {
      [this.ground, this.region] = [config.space, region];
      this.back.innerHTML = this.axes(config) + (region ? this.free(config, region) : "");
    }
    const layers = [];
    this.labels = []; // above the lines
    if (answer) {
      answer.rings.forEach((ring, k) => layers.push(this.ring(config, ring, k)));
      (answer.pulls || []).forEach((pull) => layers.push(this.line(config, pull)));
      answer.arrows.forEach((arrow, k) => layers.push(this.arrow(config.points[k], arrow)));
    }
    this.under.innerHTML = layers.concat(this.labels).join("");
    this.placePoints(config, theme);
  }

  axes({ space }) {
    const middle = SIDE / 2;
    const circle = `<circle class="unit" cx="${middle}" cy="${middle}" r="${middle / this.half}"/>`;
    const axes = `<path class="axis" d="M0 ${middle}H${SIDE}M${middle} 0V${SIDE}"/>`;
    return axes + (space === "circle" ? circle : circle.replace('class="unit"', 'class="axis"'));
  }

  fill(kind) { return kind === 2 ? 'class="zero"' : `fill="url(#${this.id})"`; }

  free({ space }, { wedges, polygons }) {
    const cut = [1, 2].map((wanted) => {
      const pieces = polygons.filter(([, kind]) => kind === wanted).map(([corners]) =>
        `M${corners.map(([x, y]) => `${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`).join("L")}Z`);
      return pieces.length ? `<path ${this.fill(wanted)} d="${pieces.join("")}"/>` : "";
    });
    const far = space === "circle" ? 1 : 3.2;
    const turned = wedges.map(([low, high, kind]) => {
      const edge = this.arcPath(low, high, far);
      if (space === "circle") {
        return `<path class="band ${kind === 2 ? "zero" : ""}" ${kind === 2 ? "" : `stroke="url(#${this.id})"`} d="${edge}"/>`;
      }
      return `<path ${this.fill(kind)} d="${edge}L${SIDE / 2} ${SIDE / 2}Z"/>`;
    });
    return cut.concat(turned).join("");
  }

  // In pieces of at most a third of a turn, so that no arc is ambiguous.
  arcPath(low, high, r) {
    const pieces = Math.max(1, Math.ceil((high - low) / 2));
    const size = ((SIDE / 2) * r) / this.half;
    const at = (angle) => `${this.x(r * Math.cos(angle)).toFixed(2)} ${this.y(r * Math.sin(angle)).toFixed(2)}`;
    let path = `M${at(low)}`;
    for (let k = 1; k <= pieces; k += 1) {
      path += `A${size} ${size} 0 0 0 ${at(low + ((high - low) * k) / pieces)}`;
    }
    return path;
  }

  ring({ points, selected, space }, [kind, size, side, label], k) {
    const anchor = points[selected];
    if (kind === "circle") {
      const r = ((SIDE / 2) * size) / this.half;
      const [cx, cy] = [this.x(anchor.x), this.y(anchor.y)];
      this.label(label, ...this.freest(points, [[cx, cy - r - 4], [cx, cy + r + 13], [cx + r, cy], [cx - r, cy]]));
      return `<circle class="ring ${side}" cx="${cx}" cy="${cy}" r="${r}"/>`;
    }
    const middle = Math.atan2(anchor.y, anchor.x);
    const r = (space === "circle" ? 1.14 : 0.75) + 0.14 * k;
    const [low, high] = [middle - size, middle + size];
    const rays = [low, high].map((angle) =>
      `<path class="ring ray ${side}" d="M${SIDE / 2} ${SIDE / 2}L${this.x(r * Math.cos(angle))} ${this.y(r * Math.sin(angle))}"/>`);
    const end = [high, low].sort((a, b) => Math.sin(b) - Math.sin(a))[k % 2];
    this.label(label, this.x((r + 0.1) * Math.cos(end)), this.y((r + 0.1) * Math.sin(end)));
    return `<path class="ring ${side}" d="${this.arcPath(low, high, r)}"/>` + rays.join("");
  }

  // Of some places inside the picture the one furthest from all points.
  freest(points, places) {
    const room = ([x, y]) => (x < 10 || y < 10 || x > SIDE - 10 || y > SIDE - 5
      ? -1 : Math.min(60, ...points.map((p) => Math.hypot(this.x(p.x) - x, this.y(p.y) - y))));
    return places.reduce((a, b) => (room(b) > room(a) ? b : a));
  }

  // Beside the picture's middle the text is centred there, nearer to an edge it ends inside.
  label(text, x, y) {
    const half = 2.9 * text.length;
    const left = Math.max(half + 4, Math.min(SIDE - half - 4, x));
    const top = Math.max(12, Math.min(SIDE - 6, y));
    this.labels.push(
      `<text class="ring-label" x="${left.toFixed(1)}" y="${top.toFixed(1)}" text-anchor="middle">${text}</text>`);
  }

  line({ points }, [first, second, , attracts, share]) {
    const [a, b] = [points[first], points[second]];
    if (!a || !b) return "";
    const width = (1 + 6 * share).toFixed(2);
    return `<path class="${attracts ? "pull" : "push"}" style="stroke-width:${width}" ` +
      `d="M${this.x(a.x).toFixed(1)} ${this.y(a.y).toFixed(1)}L${this.x(b.x).toFixed(1)} ${this.y(b.y).toFixed(1)}"/>`;
  }

  // The length grows with the gradient and levels off at a fifth of the picture.
  arrow(point, [u, v]) {
    const size = Math.hypot(u, v);
    if (!point || !(size > 1e-9)) return "";
    const length = 80 * (1 - Math.exp(-0.6 * size)) + POINT + 6;
    const [dx, dy] = [u / size, -v / size];
    const [x, y] = [this.x(point.x), this.y(point.y)];
    const at = (along, across) => `${(x + dx * along - dy * across).toFixed(1)} ${(y + dy * along + dx * across).toFixed(1)}`;
    return `<path class="arrow" d="M${at(POINT, 0)}L${at(length, 0)}"/>` +
      `<path class="head" d="M${at(length + 7, 0)}L${at(length - 2, 5)}L${at(length - 2, -5)}Z"/>`;
  }

  placePoints({ points, selected }, theme) {
    while (this.dots.length > points.length) this.dots.pop().remove();
    while (this.dots.length < points.length) this.dots.push(this.dot(this.dots.length));
    points.forEach((point, k) => {
      const [dot, shape] = [this.dots[k], classShape(point.c)];
      const [colour, outlined] = [classColour(theme, point.c), OUTLINED.includes(shape)];
      dot.setAttribute("transform", `translate(${this.x(point.x).toFixed(2)} ${this.y(point.y).toFixed(2)})`);
      dot.setAttribute("aria-pressed", String(k === selected));
      dot.setAttribute("aria-label",
        `Point ${NAMES[k]}, class ${point.c + 1}, at ${point.x.toFixed(2)}, ${point.y.toFixed(2)}`);
      const path = dot.querySelector(".shape");
      path.setAttribute("class", outlined ? "shape outlined" : "shape");
      path.setAttribute("d", shapePath(shape, POINT));
      path.style.fill = outlined ? "none" : colour;
      path.style.stroke = outlined ? colour : "";
    });
  }

  dot(k) {
    const dot = svg("g", { class: "point", role: "button", tabindex: this.tabs ? 0 : -1, "data-point": k }, this.points);
    svg("circle", { class: "grip", r: 20 }, dot);
    svg("circle", { class: "chosen", r: 15 }, dot);
    svg("path", { class: "shape" }, dot);
    svg("text", { x: 12, y: -9 }, dot).textContent = NAMES[k];
    return dot;
  }

  say({ title, closeness, searching }, answer, region) {
    const value = answer && answer.value !== null ? short(answer.value) : answer ? "none" : "...";
    this.put("title", title);
    this.put("value", value);
    const [which, ...more] = closeness.split(/(?<=\.) /);
    this.put("which", which);
    this.put("more", more.join(" "));
    this.put("words", answer ? answer.words : "Waiting for the server.");
    this.put("free", region ? region.words : searching);
    this.svg.setAttribute("aria-label", `${title}, ${value}: points A to ${NAMES[Math.max(0, this.dots.length - 1)]}`);
  }

  put(name, text) {
    const place = this.find(name);
    if (place.textContent !== text) place.textContent = text;
  }
}
