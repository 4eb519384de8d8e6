// The map: one marker a held-out sample, equal scale on both axes, pan and zoom that outlive frames.
const FADED = 0.18;

class EmbeddingMap {
  constructor(canvas, tip, redraw) {
    this.canvas = canvas;
    this.tip = tip;
    this.redraw = redraw;
    this.hidden = new Set();
    this.view = null; // { x, y, span } in embedding units
    this.held = false; // true once a person panned or zoomed
    this.sprites = null;
    this.tween = new Tween();
    this.under = []; // drawings below the points and above them, see 0_parts.js
    this.over = [];
    this.bright = null; // 1 for points that stand out, the others fade; null: all the same
    this.selecting = false; // a drag draws a box instead of moving the map
    this.box = null;
    this.onBox = null; // called with the places of the points in a box
    this.onClass = null; // called with a class chosen in the legend
    this.onPick = null; // called with the place of a point that was clicked, or -1 beside all points
    this.listen();
  }

  reset(hello) {
    this.hello = hello;
    this.images = null;
    this.sprites = null;
    this.hover = -1;
    this.tip.hidden = true;
    this.hidden.clear();
    this.tween.stop();
    this.scatter = scatterOf(hello);
    this.fit();
  }

  fit() {
    this.held = false;
    this.view = null;
  }

  // Follows the points: grows at once, shrinks only when they fill less than half, so the map does not tremble.
  follow(frame) {
    if (this.held && this.view) return;
    let [x, y, span] = [0, 0, 2.36];
    if (!this.hello.unit_circle) {
      const bounds = extent(frame);
      span = Math.max(bounds.right - bounds.left, bounds.top - bounds.bottom, 1e-6) * 1.12;
      [x, y] = [(bounds.left + bounds.right) / 2, (bounds.bottom + bounds.top) / 2];
      const now = this.view;
      if (now) {
        const reach = Math.max(Math.abs(x - now.x), Math.abs(y - now.y)) + span / 2;
        if (reach <= now.span / 2 && span > now.span * 0.5) return;
      }
    }
    this.view = { x, y, span };
  }

  place(width, height) {
    const { x, y, span } = this.view;
    const zoom = Math.min(width, height) / span;
    return { zoom, left: width / 2 - x * zoom, top: height / 2 + y * zoom };
  }

  draw(frame, theme, themeKey, still) {
    this.tween.aim(frame, still);
    const open = openCanvas(this.canvas);
    if (!open || !this.hello) {
      this.tween.past = null;
      return;
    }
    const { ctx, width, height, ratio } = open;
    const radius = frame.points > 3000 ? 2.6 : width < 380 ? 3 : 3.6;
    const key = [themeKey, radius, ratio, this.hello.classes.length].join("|");
    if (this.spriteKey !== key || !this.sprites) {
      this.sprites = makeSprites(theme, this.hello.classes.length, radius, ratio);
      this.spriteKey = key;
    }
    this.follow(frame);
    this.frame = frame;
    const at = this.place(width, height);
    this.drawGrid(ctx, width, height, at, theme);
    const scene = { ...open, at, frame, theme, colourOf: (c) => classColour(theme, c), screen: this.screen };
    this.under.forEach((layer) => layer(scene));
    this.drawPoints(ctx, frame, at, open);
    scene.screen = this.screen;
    this.over.forEach((layer) => layer(scene));
    if (this.box) drawBox(ctx, this.box, theme);
    if (this.hover >= 0) this.drawHover(ctx, frame, at, theme);
  }

  drawGrid(ctx, width, height, at, theme) {
    ctx.strokeStyle = theme.border;
    ctx.fillStyle = theme.text;
    ctx.font = "11px " + theme.font;
    ctx.lineWidth = 1;
    const toX = (v) => at.left + v * at.zoom;
    const toY = (v) => at.top - v * at.zoom;
    const columns = niceTicks(-at.left / at.zoom, (width - at.left) / at.zoom, Math.max(3, width / 90));
    const rows = niceTicks((at.top - height) / at.zoom, at.top / at.zoom, Math.max(3, height / 90));
    ctx.beginPath();
    columns.forEach((v) => { ctx.moveTo(toX(v), 0); ctx.lineTo(toX(v), height); });
    rows.forEach((v) => { ctx.moveTo(0, toY(v)); ctx.lineTo(width, toY(v)); });
    withAlpha(ctx, 0.55, () => ctx.stroke());
    withAlpha(ctx, 0.7, () => {
      ctx.textAlign = "center";
      columns.forEach((v) => { if (toX(v) > 28 && toX(v) < width - 12) ctx.fillText(short(v), toX(v), height - 4); });
      ctx.textAlign = "left";
      rows.forEach((v) => { if (toY(v) > 12 && toY(v) < height - 18) ctx.fillText(short(v), 3, toY(v) - 3); });
    });
    if (this.hello.unit_circle) {
      ctx.beginPath();
      ctx.arc(toX(0), toY(0), at.zoom, 0, 7);
      withAlpha(ctx, 0.45, () => { ctx.strokeStyle = theme.text; ctx.stroke(); });
    }
  }

  drawPoints(ctx, frame, at, { width, height, ratio }) {
    const { index, classOf } = this.hello;
    const { past, share } = this.tween; // `past` as it was before `share` may end it
    const [now, before] = [toScreen(frame, at), past && share < 1 ? toScreen(past, at) : null];
    const xy = frame.xy;
    const reuse = this.screen && this.screen.length === xy.length;
    const screen = reuse ? this.screen : new Float32Array(xy.length);
    for (let i = 0; i < frame.points; i += 1) {
      const away = this.scatter ? this.scatter[i] : 1;
      let x = now.left + now.x * xy[2 * i];
      let y = now.top + now.y * xy[2 * i + 1];
      if (before) {
        x = share * x + (1 - share) * (before.left + before.x * past.xy[2 * i]);
        y = share * y + (1 - share) * (before.top + before.y * past.xy[2 * i + 1]);
      }
      x = at.left + (x - at.left) * away;
      y = at.top + (y - at.top) * away;
      if (this.bright) ctx.globalAlpha = this.bright[i] ? 1 : FADED;
      const c = classOf[index[i]];
      const seen = !this.hidden.has(c) && x > -9 && y > -9 && x < width + 9 && y < height + 9;
      screen[2 * i] = seen ? x : NaN;
      screen[2 * i + 1] = y;
      if (!seen) continue;
      const { picture, size } = this.sprites[c];
      // On whole device pixels a picture is copied instead of resampled.
      const left = Math.round((x - size / 2) * ratio) / ratio;
      const top = Math.round((y - size / 2) * ratio) / ratio;
      ctx.drawImage(picture, left, top, size, size);
    }
    ctx.globalAlpha = 1;
    this.screen = screen;
  }

  // A place on the canvas, drawn a little inside or outside the circle as its point is.
  spread(i, x, y, at) {
    const away = this.scatter ? this.scatter[i] : 1;
    return [at.left + (x - at.left) * away, at.top + (y - at.top) * away];
  }

  // Places of the points seen inside a box of the canvas.
  inside([x0, y0, x1, y1]) {
    const found = [];
    for (let i = 0; this.screen && i < this.screen.length / 2; i += 1) {
      const [x, y] = [this.screen[2 * i], this.screen[2 * i + 1]];
      if (x >= Math.min(x0, x1) && x <= Math.max(x0, x1) && y >= Math.min(y0, y1) && y <= Math.max(y0, y1)) found.push(i);
    }
    return found;
  }

  drawHover(ctx, frame, at, theme) {
    const [x, y] = [this.screen[2 * this.hover], this.screen[2 * this.hover + 1]];
    if (!Number.isFinite(x)) return;
    ctx.beginPath();
    ctx.arc(x, y, 8, 0, 7);
    ctx.lineWidth = 2;
    ctx.strokeStyle = theme.text;
    ctx.stroke();
  }

  nearest(x, y) {
    let [best, found] = [14 * 14, -1];
    for (let i = 0; this.screen && i < this.screen.length / 2; i += 1) {
      const [dx, dy] = [this.screen[2 * i] - x, this.screen[2 * i + 1] - y];
      const far = dx * dx + dy * dy;
      if (far < best) [best, found] = [far, i];
    }
    return found;
  }

  point(x, y) {
    const found = this.nearest(x, y);
    if (found === this.hover) return;
    this.hover = found;
    if (found < 0) this.tip.hidden = true;
    else this.showTip(found, x, y);
    this.redraw();
  }

  showTip(found, x, y) {
    const sample = this.hello.index[found];
    const name = wholeName(this.hello, this.hello.classOf[sample]);
    this.tip.replaceChildren();
    if (this.images) this.tip.append(thumbnail(this.images, sample, 56));
    const text = document.createElement("span");
    text.textContent = "class " + name + ", sample " + sample;
    this.tip.append(text);
    this.tip.hidden = false;
    const wide = this.canvas.clientWidth;
    this.tip.style.left = Math.min(x + 12, Math.max(0, wide - 150)) + "px";
    this.tip.style.top = Math.max(0, y - 30) + "px";
  }

  zoomBy(factor, x, y) {
    if (!this.view) return;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const before = this.place(width, height);
    const [px, py] = [x ?? width / 2, y ?? height / 2];
    const dataX = (px - before.left) / before.zoom;
    const dataY = (before.top - py) / before.zoom;
    const span = Math.min(1e7, Math.max(1e-7, this.view.span / factor));
    const shrink = span / this.view.span;
    this.view = { x: dataX + (this.view.x - dataX) * shrink, y: dataY + (this.view.y - dataY) * shrink, span };
    this.held = true;
    this.redraw();
  }

  listen() {
    const canvas = this.canvas;
    let [drag, start] = [null, null];
    const where = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.onwheel = (event) => {
      // A plain wheel scrolls the page; with Ctrl (or a pinch, which browsers report so) it zooms the map.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY / 200), ...where(event));
    };
    canvas.onpointerdown = (event) => {
      drag = where(event);
      start = drag;
      this.box = this.selecting || event.shiftKey ? [...drag, ...drag] : null;
      canvas.setPointerCapture(event.pointerId);
    };
    canvas.onpointermove = (event) => {
      const now = where(event);
      if (!drag) return this.point(...now);
      if (this.box) {
        this.box.splice(2, 2, ...now);
        return this.redraw();
      }
      if (!this.view) return undefined;
      const { zoom } = this.place(canvas.clientWidth, canvas.clientHeight);
      this.view = {
        x: this.view.x - (now[0] - drag[0]) / zoom,
        y: this.view.y + (now[1] - drag[1]) / zoom,
        span: this.view.span,
      };
      drag = now;
      this.held = true;
      return this.redraw();
    };
    canvas.onpointerup = (event) => {
      drag = null;
      const [x, y] = where(event);
      const box = this.box;
      this.box = null;
      if (box && Math.hypot(x - start[0], y - start[1]) >= 4) return this.onBox && this.onBox(this.inside(box));
      if (this.onPick && start && Math.hypot(x - start[0], y - start[1]) < 4) this.onPick(this.nearest(x, y));
      return undefined;
    };
    canvas.onpointercancel = () => { drag = null; this.box = null; };
    canvas.onpointerleave = () => { if (!drag) this.point(-1e6, -1e6); };
    canvas.ondblclick = () => { this.fit(); this.redraw(); };
  }
}

function drawBox(ctx, [x0, y0, x1, y1], theme) {
  ctx.save();
  ctx.strokeStyle = theme.primary;
  ctx.setLineDash([5, 3]);
  ctx.strokeRect(x0, y0, x1 - x0, y1 - y0);
  ctx.restore();
}

// On the unit circle samples hide each other, so each is drawn a little inside or outside, always the same.
function scatterOf(hello) {
  if (!hello.unit_circle) return null;
  return Float32Array.from(hello.index, (_, i) => 1 + 0.06 * (((i * 0.6180339887) % 1) * 2 - 1));
}

// Where steps of a frame's coordinates lie on the canvas.
function toScreen({ x_low: low, y_low: bottom, scale }, at) {
  return {
    left: at.left + low * at.zoom, x: scale * at.zoom, top: at.top - bottom * at.zoom, y: -scale * at.zoom,
  };
}

function extent(frame) {
  let [left, right, low, high] = [65535, 0, 65535, 0];
  for (let i = 0; i < frame.points; i += 1) {
    const [x, y] = [frame.xy[2 * i], frame.xy[2 * i + 1]];
    if (x < left) left = x;
    if (x > right) right = x;
    if (y < low) low = y;
    if (y > high) high = y;
  }
  return {
    left: frame.x_low + left * frame.scale,
    right: frame.x_low + right * frame.scale,
    bottom: frame.y_low + low * frame.scale,
    top: frame.y_low + high * frame.scale,
  };
}
