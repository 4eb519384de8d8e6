// The whole playground: points, undo, steps; the boards draw, the talk asks.
const HISTORY = 100;
const LEAST = 3;
const MOST = 8;
const CLASSES = 8;

class Playground {
  constructor(host) {
    const holder = document.createElement("div");
    holder.innerHTML = MARKUP;
    host.append(holder);
    this.root = holder.querySelector(".play");
    this.find = (name) => this.root.querySelector("." + name);
    Object.assign(this, { points: [], past: [], boards: [], answers: [], regions: [], selected: 0, version: 0 });
    Object.assign(this, { steps: 0, told: new Set(), rate: "0.1", follow: 0 });
    this.root.delays = []; // ms from a moved pointer to the drawn answer, for measurements
    this.talk = new Talk(this);
    this.listen();
  }

  // Called by Streamlit at mount, on new data and on a change of theme.
  configure({ data: [data], setStateValue, setTriggerValue }) {
    this.setState = setStateValue;
    this.trigger = setTriggerValue;
    this.theme = readTheme(this.root);
    for (const [name, k] of [["pull", 0], ["push", 4], ["free", 2]]) {
      this.root.style.setProperty("--" + name, this.theme.palette[k % this.theme.palette.length]);
    }
    const former = this.data;
    this.data = data;
    const turned = this.space !== data.setup.space;
    this.space = data.setup.space;
    if (!former) this.enter(data);
    else if (data.points !== former.points && !this.told.has(data.points) && data.points !== pointsText(this.points)) {
      this.change(() => { this.points = parsePoints(data.points); });
    }
    if (turned) this.points = this.points.map((point) => settle(point, this.space));
    this.selected = Math.min(this.selected, this.points.length - 1);
    const setup = JSON.stringify(data.setup);
    const another = setup !== this.setupText;
    this.setupText = setup;
    if (another) this.newSetup(former);
    if (data.path) {
      this.talk.slow = false;
      this.talk.socket.open(data.path);
    } else this.slowly(data);
    this.later();
  }

  enter(data) {
    this.points = parsePoints(data.points);
    this.start = this.points;
    this.selected = Math.max(0, NAMES.indexOf(data.selected));
    this.rate = data.rates.includes(data.rate) ? data.rate : "0.1";
    this.follow = Math.max(0, data.names.indexOf(data.follow));
    this.choices("starts", [["", "choose"], ...data.starts.map(([title], k) => [k, title])], "");
    this.choices("rate", data.rates.map((rate) => [rate, rate]), this.rate);
    this.told.add(data.points);
  }

  newSetup(former) {
    const followed = former && former.names[this.follow];
    this.follow = Math.max(0, this.data.names.indexOf(followed || this.data.follow));
    this.choices("follow", this.data.titles.map((title, k) => [k, title]), this.follow);
    this.answers = [];
    this.regions = [];
    this.talk.regionOf = null;
    this.boards.forEach((board) => board.figure.remove());
    const place = this.find("boards");
    place.dataset.count = this.data.titles.length;
    this.boards = this.data.titles.map((_, k) => new LossBoard(place, k === 0));
    this.pause();
    if (former) this.talk.begin();
  }

  slowly(data) {
    const first = !this.talk.slow;
    this.talk.slow = true;
    this.root.dataset.transport = "script";
    this.note("No direct connection to the server: answers come slower, and no regions are shaded.");
    if (first) this.talk.begin();
    if (data.answer) this.talk.take(data.answer);
  }

  choices(name, options, chosen) {
    const select = this.find(name);
    select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
    select.value = String(chosen);
  }

  note(text) {
    this.find("note").hidden = !text;
    this.find("note").textContent = text;
  }

  // A change by hand: kept for Undo; changes with the same name in quick succession count as one.
  change(make, name = "", since = performance.now()) {
    const now = performance.now();
    const goesOn = name && name === this.changing && now - this.changed < 1500;
    if (!goesOn) this.remember();
    this.changing = name;
    this.changed = now;
    make();
    this.points = this.points.map((point) => settle(point, this.space));
    this.selected = Math.min(this.selected, this.points.length - 1);
    Object.assign(this, { start: this.points, steps: 0, ended: "" });
    this.moved(since);
  }

  remember() {
    this.past.push({ points: this.points, selected: this.selected, steps: this.steps, start: this.start });
    if (this.past.length > HISTORY) this.past.shift();
  }

  moved(since) {
    this.version += 1;
    if (this.answers.length && this.answers[0].arrows.length !== this.points.length) this.answers = [];
    this.talk.ask(since);
    this.talk.rest();
    this.later();
  }

  undo() {
    const former = this.past.pop();
    if (!former) return;
    this.pause();
    Object.assign(this, former, { changing: "", ended: "" });
    this.points = this.points.map((point) => settle(point, this.space));
    this.moved();
  }

  select(k) {
    if (k === this.selected) return;
    this.selected = k;
    this.moved();
  }

  setClass(k, c) {
    if (this.points[k].c === c) return;
    this.change(() => { this.points = this.points.map((p, i) => (i === k ? { ...p, c } : p)); });
  }

  // The next class: those of the other points, and one new one.
  nextClass(k) {
    const others = this.points.filter((_, i) => i !== k).map((p) => p.c);
    const count = Math.min(CLASSES, Math.max(...others) + 2);
    this.setClass(k, (this.points[k].c + 1) % count);
  }

  place(k, x, y, name, since) {
    this.change(() => { this.points = this.points.map((p, i) => (i === k ? { ...p, x, y } : p)); }, name, since);
  }

  add() {
    if (this.points.length >= MOST) return;
    // The freest of some places on a ring, so that the new point covers no other.
    const places = Array.from({ length: 24 }, (_, k) => ({ x: Math.cos((k * Math.PI) / 12), y: Math.sin((k * Math.PI) / 12) }));
    const room = (q) => Math.min(...this.points.map((p) => Math.hypot(p.x - q.x, p.y - q.y)));
    const best = places.reduce((a, b) => (room(b) > room(a) + 1e-9 ? b : a));
    const c = this.points[this.selected].c;
    this.change(() => { this.points = [...this.points, { ...best, c }]; this.selected = this.points.length - 1; });
  }

  remove(k) {
    if (this.points.length <= LEAST) return;
    this.change(() => { this.points = this.points.filter((_, i) => i !== k); });
  }

  takeRegion(found) {
    if (found.id !== this.talk.regionNumber || this.regionKey() !== this.talk.regionOf) return;
    this.regions[found.region] = found;
    this.later();
  }

  // A region tells where the selected point could stand: it depends on all the others, not on itself.
  regionKey() {
    const others = this.points.map((p, k) => (k === this.selected ? p.c : [p.x, p.y, p.c]));
    return JSON.stringify([this.selected, others, this.setupText]);
  }

  tell() {
    if (this.playing || !this.setState) return;
    if (this.held || this.talk.waiting) return void this.talk.rest();
    const points = pointsText(this.points);
    const state = { points, rate: this.rate, follow: this.follow ? this.data.names[this.follow] : "", selected: NAMES[this.selected] };
    const text = JSON.stringify(state);
    this.announce();
    if (text === this.lastTold || (!this.lastTold && !this.version)) return;
    this.lastTold = text;
    this.told.add(points);
    const kept = Object.entries(this.data.defaults).map(([key, usual]) => {
      const text = state[key.split(".")[1]];
      return [key, text === usual ? "" : text];
    });
    keepInAddress(Object.fromEntries(kept));
    this.setState("told", state);
  }

  announce() {
    const said = this.answers.map((answer, k) => `${this.data.titles[k]} ${answer.value === null ? "has no value" : short(answer.value)}`);
    this.find("announce").textContent = said.join(", ");
  }

  // At most one drawing an animation frame.
  later(after) {
    if (after) (this.afterDraw = this.afterDraw || []).push(after);
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => {
      this.planned = false;
      this.draw();
      (this.afterDraw || []).forEach((done) => done());
      this.afterDraw = null;
    });
  }

  close() {
    clearTimeout(this.nextStep);
    this.playing = false;
    this.talk.close();
    this.root.parentElement.remove();
  }

  draw() {
    const config = { points: this.points, selected: this.selected, space: this.space };
    const valid = this.regionKey() === this.talk.regionOf;
    const searching = this.playing || this.talk.slow ? ""
      : `Looking where ${NAMES[this.selected]} would be left alone ...`;
    this.boards.forEach((board, k) => {
      const region = valid ? this.regions[k] : null;
      board.draw(config, this.answers[k], region, this.theme);
      board.say({ title: this.data.titles[k], closeness: this.data.closeness[k], searching }, this.answers[k], region);
    });
    this.drawBars();
  }

  // A configuration's text on this space.
  here(points) { return pointsText(parsePoints(points).map((point) => settle(point, this.space))); }

  drawBars() {
    const [name, count] = [NAMES[this.selected], this.points.length];
    this.root.querySelectorAll(".who").forEach((place) => { place.textContent = name; });
    this.find("undo").disabled = !this.past.length;
    this.find("add").disabled = count >= MOST;
    this.find("remove").disabled = count <= LEAST;
    this.find("reset").disabled = !this.steps;
    this.find("run").textContent = this.playing ? "Pause" : "Play";
    this.find("status").setAttribute("aria-live", this.playing ? "off" : "polite");
    this.find("status").textContent = `step ${this.steps}` + (this.ended ? `, ${this.ended}` : "");
    Object.assign(this.root.dataset, { space: this.space, step: this.steps, playing: Boolean(this.playing), points: count, version: this.version });
    const kinds = Array.from({ length: CLASSES }, (_, c) => [c, `${c + 1} (${classShape(c)})`]);
    if (!this.find("class").options.length) this.choices("class", kinds, 0);
    this.find("class").value = String(this.points[this.selected].c);
    const text = pointsText(this.points);
    const known = this.data.starts.findIndex(([, , points]) => points === text || this.here(points) === text);
    this.find("starts").value = known < 0 ? "" : String(known);
    if (known >= 0) this.find("look").textContent = this.data.starts[known][1];
    else if (this.steps) this.find("look").textContent = `Steps descend on ${this.data.titles[this.follow]}.`;
    else this.find("look").textContent = "Your own configuration.";
  }
}
