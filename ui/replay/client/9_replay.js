// One clock for all runs: a move of the slider draws everything anew here; once it rests the page is told.
const REST = 500; // ms without a move
const STEP = "compare.step"; // in the address; without it the last step is meant
const [PACE, CALM_PACE] = [260, 1000]; // ms a recorded step while it plays
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

class Replay {
  constructor(host) {
    const holder = document.createElement("div");
    holder.innerHTML = MARKUP;
    host.append(holder);
    this.root = holder.querySelector(".replay");
    this.find = (name) => this.root.querySelector("." + name);
    this.hidden = new Set();
    this.slider = this.find("slider");
    this.slider.oninput = () => { this.pause(); this.show(Number(this.slider.value)); };
    this.find("play").onclick = () => (this.playing ? this.pause() : this.play());
    this.observer = new ResizeObserver(() => this.later());
    this.observer.observe(this.root);
  }

  // Called by Streamlit at mount, on new data and on a change of theme.
  configure({ data, setTriggerValue }) {
    this.trigger = setTriggerValue;
    this.theme = readTheme(this.root);
    const key = JSON.stringify(this.theme);
    if (data instanceof Uint8Array) {
      const about = decodeReplay(data);
      if (!this.about || about.id !== this.about.id) this.begin(about);
    }
    if (this.about && key !== this.themeKey) this.legend = false;
    this.themeKey = key;
    this.later();
  }

  begin(about) {
    this.pause();
    this.about = about;
    this.place = about.start;
    this.told = about.start;
    this.drawn = ""; // of other runs, though place and width may be the same
    this.hidden.clear();
    ["maps", "distances"].forEach((name) => this.find(name).replaceChildren());
    this.root.style.setProperty("--runs", about.runs.length);
    this.lanes = about.runs.map((run, place) => new Lane(this, run, place));
    this.numbers = new Numbers(this);
    this.curves = new RunCurves(this);
    this.slider.max = String(about.steps.length - 1);
    this.slider.disabled = about.steps.length < 2;
    this.find("play").disabled = about.steps.length < 2;
    setWords(this.find("distances-words"), about.distances);
    setWords(this.find("curves-words"), about.ends);
    this.legend = false;
  }

  show(place) {
    this.place = Math.min(Math.max(place, 0), this.about.steps.length - 1);
    clearTimeout(this.resting);
    if (!this.playing) this.resting = setTimeout(() => this.rest(), REST);
    this.later();
  }

  // The page learns of the step once, when nothing moves any more.
  rest() {
    if (this.place === this.told) return;
    this.told = this.place;
    const step = String(this.about.steps[this.place]);
    keepInAddress({ [STEP]: this.place === this.about.steps.length - 1 ? "" : step });
    this.trigger("rest", step);
  }

  play() {
    if (this.place === this.about.steps.length - 1) this.place = 0;
    this.playing = setInterval(() => {
      this.show(this.place + 1);
      if (this.place === this.about.steps.length - 1) this.pause();
    }, calm.matches ? CALM_PACE : PACE);
    this.show(this.place);
    this.later();
  }

  pause() {
    if (!this.playing) return;
    clearInterval(this.playing);
    this.playing = null;
    this.show(this.place);
  }

  // From where all points of all maps are seen.
  wholeView() {
    if (this.about.unit_circle) return { x: 0, y: 0, span: 2.36 };
    const bounds = this.lanes.map(({ run }) => extent(run.frames[this.place]));
    const left = Math.min(...bounds.map((one) => one.left));
    const right = Math.max(...bounds.map((one) => one.right));
    const bottom = Math.min(...bounds.map((one) => one.bottom));
    const top = Math.max(...bounds.map((one) => one.top));
    const span = Math.max(right - left, top - bottom, 1e-6) * 1.12;
    return { x: (left + right) / 2, y: (bottom + top) / 2, span };
  }

  // What is pointed at, panned or zoomed on one map is so on all.
  follow(map) {
    this.lanes.forEach((lane) => {
      if (lane.map === map) return;
      lane.map.hover = map.hover;
      lane.map.held = map.held;
      lane.map.view = map.held ? { ...map.view } : null;
    });
    this.later();
  }

  later() {
    if (this.planned || !this.about) return;
    this.planned = true;
    requestAnimationFrame(() => {
      this.planned = false;
      this.draw();
    });
  }

  draw() {
    const step = this.about.steps[this.place];
    const still = !this.playing || calm.matches;
    if (!this.legend) this.drawLegend();
    setWords(this.find("play"), this.playing ? "Pause" : "Play");
    this.lanes.forEach((lane) => lane.draw(this.place, this, still));
    if (this.lanes.some((lane) => lane.map.tween.moving)) this.later();
    const key = [this.place, this.themeKey, this.root.clientWidth].join();
    if (key === this.drawn) return; // only the maps move between two steps
    this.drawn = key;
    this.lanes.forEach((lane) => lane.drawDistances(this.place, this));
    this.curves.draw(step, this);
    this.numbers.draw(this.place);
    this.drawWords(step);
  }

  drawWords(step) {
    this.root.dataset.step = String(step);
    this.slider.value = String(this.place);
    this.slider.setAttribute("aria-valuetext", "step " + step);
    setWords(this.find("moment"), "step " + step);
    setWords(this.find("maps-words"), this.about.moments[this.place].maps);
    setWords(this.find("findings"), this.about.moments[this.place].findings);
  }

  drawLegend() {
    this.legend = true;
    const all = { hello: this.lanes[0].run.hello, hidden: this.hidden };
    drawLegend(this.find("legend"), all, this.theme, () => this.later());
    this.curves.drawKeys(this);
  }

  close() {
    this.observer.disconnect();
    clearInterval(this.playing);
    clearTimeout(this.resting);
  }
}

const REPLAYS = new WeakMap();

export default function mount(component) {
  const host = component.parentElement;
  if (!REPLAYS.has(host)) REPLAYS.set(host, new Replay(host));
  const replay = REPLAYS.get(host);
  replay.configure(component);
  return () => { replay.close(); REPLAYS.delete(host); };
}
