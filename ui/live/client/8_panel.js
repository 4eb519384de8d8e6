// One panel: one clock for all views, scrubbing over what was received, keys, and the texts under the charts.
const [SLOW_VIEWS, TEXTS, PAIRS] = [150, 250, 500]; // ms between drawings while it trains
const [HEAD, MAP, MOVING, ALL] = [0, 1, 2, 3]; // to be drawn anew: step and state, map, histograms, all
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

const RESTING = new Set(["ready", "paused", "finished", "recorded"]);

class LivePanel {
  constructor(host) {
    const holder = document.createElement("div");
    holder.innerHTML = MARKUP;
    host.append(holder);
    this.root = holder.querySelector(".lab");
    this.find = (name) => this.root.querySelector("." + name);
    this.history = new History();
    this.drawn = 0;
    this.done = {};
    this.behind = new Set();
    this.epoch = -1;
    this.state = { state: "waiting", step: 0 };
    this.map = new EmbeddingMap(this.find("map"), this.find("tip"), () => this.later());
    this.histogram = new Histogram(this.find("histogram"));
    this.loss = new Curves(this.find("loss"));
    this.quality = new Curves(this.find("quality"));
    this.heat = new PairHeat(this.find("heat"));
    this.tab = new TabRun({
      onPacket: (buffer) => this.take(buffer, true),
      tellLink: (state, words) => this.tellLink(state, words),
      tellNote: (text) => this.tellNote(text),
      ask: (name, value) => this.trigger(name, value),
      stepShown: () => (this.state.state === "recorded" ? 0 : this.state.step || 0),
    });
    this.moments = new Moments(this);
    this.parts = PARTS.map((make) => make(this));
    listenTo(this);
    this.observer = new ResizeObserver(() => this.later());
    this.observer.observe(this.root);
  }

  get frames() { return this.history.frames; }

  get shown() { return this.history.shown; }

  // Called by Streamlit at mount, on new data and on a change of theme.
  configure({ data, setTriggerValue }) {
    this.trigger = setTriggerValue;
    this.theme = readTheme(this.root);
    this.themeKey = JSON.stringify(this.theme);
    this.legendOf = null;
    if (data instanceof Uint8Array) {
      this.tab.socket.close();
      this.root.dataset.transport = "fragment";
      this.tellLink("frames come every half second: no direct connection to the server");
      this.take(data.slice().buffer, false);
    } else if (data && data.path) {
      this.root.dataset.transport = "socket";
      this.allowed = data.allowed;
      if (!this.frames.length) {
        this.history.wanted = data.show ?? null;
        this.moments.known = data.step;
      }
      this.tab.connect(data);
    }
    this.later();
  }

  tellLink(state, words) {
    const link = this.find("link");
    this.root.dataset.link = state;
    link.hidden = state === "connected";
    setText(link, words || state);
  }

  take(buffer, acknowledge) {
    const messages = decodePacket(buffer);
    const before = this.drawnState();
    messages.forEach((message) => this.absorb(message));
    this.history.thin();
    // A step count alone changes nothing in the charts.
    const has = (...kinds) => messages.some((message) => kinds.includes(message.kind));
    if (acknowledge && has(KIND.frame, KIND.glance)) this.owesAck = true;
    if (has(KIND.hello, KIND.frame, KIND.images) || this.drawnState() !== before) this.later(ALL);
    else this.later(has(KIND.glance) ? MOVING : HEAD);
  }

  // What the charts show of the state.
  drawnState() {
    const { state, total, events, marks, phase } = this.state;
    return JSON.stringify([state, total, events, marks, phase]);
  }

  absorb({ kind, epoch, body }) {
    if (kind === KIND.hello) {
      if (epoch === this.epoch && this.hello) return;
      this.epoch = epoch;
      this.history.clear();
      this.hello = decodeHello(body);
      this.images = null;
      this.map.reset(this.hello);
      this.legendOf = null;
      this.parts.forEach((part) => part.reset && part.reset(this.hello));
    } else if (epoch !== this.epoch) {
      if (kind === KIND.state && !this.hello) this.state = decodeState(body);
    } else if (kind === KIND.state) this.takeState(decodeState(body));
    else if (kind === KIND.frame) this.history.add(decodeFrame(body));
    else if (kind === KIND.glance) this.history.glance = decodeGlance(body);
    else if (kind === KIND.images) {
      decodeImages(body).then((images) => { this.images = images; this.map.images = images; this.later(); });
    } else this.parts.forEach((part) => part.message && part.message(kind, body));
  }

  // Play after looking back follows what is trained; looking back while it trains stays where it is.
  takeState(state) {
    const begins = state.state === "running" && RESTING.has(this.state.state);
    if (begins && this.history.wanted === null) this.history.shown = null;
    this.state = state;
  }

  // At most one drawing an animation frame, and with reduced motion at most two a second.
  later(what = ALL) {
    this.stale = Math.max(this.stale || HEAD, what);
    if (this.planned) return;
    this.planned = true;
    const wait = calm.matches ? Math.max(0, 500 - (performance.now() - (this.lastDraw || 0))) : 0;
    const draw = () => requestAnimationFrame(() => {
      this.planned = false;
      this.lastDraw = performance.now();
      this.draw();
      this.moments.tell();
      if (this.owesAck) {
        this.owesAck = false;
        this.tab.socket.send({ do: "ack" });
      }
    });
    if (wait) setTimeout(draw, wait);
    else draw();
  }

  draw() {
    this.drawHead();
    this.root.dataset.empty = String(!this.hello || !this.frames.length);
    if (this.root.dataset.empty === "true" || this.stale === HEAD) return;
    const level = this.stale;
    if (level === ALL) this.behind = new Set(["slowViews", "texts", "pairs"]);
    this.stale = HEAD;
    const frame = this.frames[this.history.at];
    const moment = this.history.moment(frame);
    if (this.legendOf !== this.themeKey + this.epoch) this.drawOnce();
    this.drawMoment(moment, level);
    if (this.isDue("slowViews", SLOW_VIEWS)) {
      this.drawCurves(frame);
      this.heat.draw(frame, this.theme, this.selection.onHeat);
      this.parts.forEach((part) => part.draw && part.draw(frame, moment));
    }
    if (this.isDue("texts", TEXTS)) drawTexts(this, frame, this.history.at, moment);
    if (this.isDue("pairs", PAIRS)) {
      drawPairs(this.find("pairs"), frame, this.hello, this.images, this.selection);
    }
    Object.assign(this.root.dataset, { frames: this.drawn, received: this.frames.length, epoch: this.epoch });
  }

  drawMoment(moment, level) {
    const live = this.shown === null; // scrubbing shows moments at once
    this.map.draw(moment, this.theme, this.themeKey, !live || calm.matches);
    const marked = live && this.state.marks ? { ...moment, marks: this.state.marks } : moment;
    if (level !== MAP) this.histogram.draw(marked, this.hello, this.theme, this.selection.onHistogram);
    if (this.map.tween.moving) this.later(MAP);
    else if (moment.sent && live && moment !== this.timed) {
      this.timed = moment;
      this.root.dataset.delay = (Date.now() - moment.sent).toFixed(1);
    }
    if (moment !== this.lastMoment) this.drawn += 1;
    this.lastMoment = moment;
  }

  // While it trains, map and histogram follow every frame, the rest at most so often; at rest all is exact.
  isDue(name, wait) {
    if (!this.behind.has(name)) return false;
    const now = performance.now();
    const resting = this.state.state !== "running" || this.shown !== null;
    if (!resting && now - (this.done[name] || 0) < wait) return false;
    this.done[name] = now;
    this.behind.delete(name);
    return true;
  }

  drawHead() {
    const { state, total, reason } = this.state;
    const newest = this.history.newestStep;
    const live = this.shown === null;
    const step = live ? Math.max(this.state.step || 0, newest) : this.frames[this.shown].step;
    setText(this.find("step"), "step " + step);
    setText(this.find("words"), live ? WORDS[state] || "waiting for the first frame"
      : "shown from the history; the run is at step " + (this.state.step || newest));
    this.find("step").setAttribute("aria-live", state === "running" ? "off" : "polite");
    const progress = this.find("progress");
    progress.max = total || 1;
    progress.value = Math.min(step, total || 1);
    const box = this.find("reason");
    box.hidden = !reason;
    setText(box, reason || "");
    Object.assign(this.root.dataset, { state, step: String(step) });
    this.drawScrubber(newest);
  }

  drawScrubber(newest) {
    const slider = this.find("slider");
    const last = Math.max(0, this.frames.length - 1);
    slider.disabled = last === 0;
    slider.max = String(last);
    slider.value = String(this.shown === null ? last : this.shown);
    const step = this.shown === null ? newest : this.frames[this.shown].step;
    slider.setAttribute("aria-valuetext", "step " + step);
    setText(this.find("moment"), this.shown === null ? "newest" : "step " + step);
    this.find("newest").disabled = this.shown === null;
  }

  drawOnce() {
    this.legendOf = this.themeKey + this.epoch;
    drawLegend(this.find("legend"), this.map, this.theme, () => this.later());
    const direction = this.hello.inverted ? "larger is closer" : "smaller is closer";
    this.find("histogram-title").textContent = "Pairs: " + this.hello.distance + " (" + direction + ")";
    this.find("map-title").title = this.hello.map_note;
    const colours = { "--key": 2, "--pull": POSITIVE, "--push": NEGATIVE };
    Object.entries(colours).forEach(([name, c]) => this.root.style.setProperty(name, classColour(this.theme, c)));
  }

  drawCurves(frame) {
    const look = { total: this.state.total, cursor: frame.step, events: this.state.events };
    const loss = { values: over(this.frames, "loss"), colour: classColour(this.theme, 0) };
    const quality = [
      { values: over(this.frames, "recall_at_1"), colour: classColour(this.theme, 2) },
      { values: over(this.frames, "map_at_r"), colour: classColour(this.theme, 2), dash: [6, 3] },
    ];
    this.loss.draw([loss], this.theme, look);
    this.quality.draw(quality, this.theme, { ...look, fixed: [0, 1], level: this.hello.chance });
  }

  show(place) {
    this.history.show(place);
    this.later();
  }

  // What the page does not offer its keys do not do either.
  command(name) {
    if (this.allowed && !this.allowed.includes(name)) return;
    if (!this.tab.socket.send({ do: name })) this.trigger("command", name);
  }

  explain(term) {
    const sentence = (this.hello && this.hello.glossary[term]) || "";
    const text = sentence && term + ": " + sentence;
    this.tellNote(this.find("note").textContent === text ? "" : text);
  }

  tellNote(text) {
    this.find("note").hidden = !text;
    this.find("note").textContent = text;
  }

  close() {
    this.observer.disconnect();
    this.moments.close();
    this.tab.close();
  }
}

const PANELS = new WeakMap();

export default function mount(component) {
  const host = component.parentElement;
  if (!PANELS.has(host)) PANELS.set(host, new LivePanel(host));
  const panel = PANELS.get(host);
  panel.configure(component);
  return () => { panel.close(); PANELS.delete(host); };
}
