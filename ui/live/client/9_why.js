// Why did this point move? A point is picked by click or key, the server says what pulled and pushed it.
const ASK_EVERY = { running: 1000, resting: 120 }; // ms between two questions
KIND.batch = 6;
KIND.why = 7;

class Why {
  constructor(panel) {
    this.panel = panel;
    panel.why = this;
    this.figure = document.createElement("figure");
    this.figure.className = "why-view";
    this.figure.innerHTML = STEP_VIEW;
    panel.find("gauges-view").before(this.figure);
    this.find = (name) => this.figure.querySelector("." + name);
    this.reset();
    this.listen();
  }

  reset() {
    Object.assign(this, { picked: null, told: null, batch: null, chosen: 0, strongest: false });
    Object.assign(this, { askedWhy: "", askedBatch: "", lastAsked: 0, screen: null });
    this.render();
  }

  listen() {
    const { panel } = this;
    panel.map.over.push((scene) => this.paint(scene));
    panel.map.onPick = (point) => this.click(point);
    panel.map.canvas.addEventListener("pointerup", (event) => { this.at = [event.offsetX, event.offsetY]; }, true);
    this.find("show-batch").onchange = () => { this.askedBatch = ""; this.ask(); panel.later(); };
    this.find("why-back").onclick = () => this.walk(-1);
    this.find("why-next").onclick = () => this.walk(1);
    this.find("why-clear").onclick = () => this.clear();
    this.find("why-go").onclick = () => this.go(this.told.partners[this.chosen]);
  }

  // The batch is on the map while asked for, and during the phases of a step.
  get shows() {
    return this.find("show-batch").checked || Boolean(this.panel.state.phase);
  }

  get live() {
    return this.panel.shown === null;
  }

  pick(of, point) {
    this.picked = { of, point };
    this.chosen = 0;
    this.askedWhy = "";
    this.ask();
    this.render();
    this.panel.later();
  }

  clear() {
    Object.assign(this, { picked: null, told: null, strongest: false });
    this.render();
    this.panel.later();
  }

  click(point) {
    const { map } = this.panel;
    const far = (screen, k) => Math.hypot(screen[2 * k] - this.at[0], screen[2 * k + 1] - this.at[1]);
    let [best, row] = [point >= 0 ? far(map.screen, point) : 14, -1];
    for (let k = 0; this.screen && k < this.screen.length / 2; k += 1) {
      if (far(this.screen, k) <= best) [best, row] = [far(this.screen, k), k];
    }
    if (row >= 0) this.pick("batch", row);
    else if (point >= 0) this.pick("map", point);
    else if (this.picked) this.clear();
  }

  // Without a pick: the sample of the batch with the largest force. Else on by force, or by place on the map.
  walk(by) {
    if (!this.picked || (this.picked.of === "batch" && !this.batch)) {
      this.strongest = true;
      this.askedBatch = "";
      return this.ask();
    }
    if (this.picked.of === "map") {
      const count = this.panel.hello.points;
      return this.pick("map", (this.picked.point + by + count) % count);
    }
    const order = this.byForce();
    const at = order.indexOf(this.picked.point);
    return this.pick("batch", order[(at + by + order.length) % order.length]);
  }

  byForce() {
    const size = this.batch.arrows ? lengths(this.batch.arrows) : [];
    return [...Array(this.batch.rows).keys()].sort((a, b) => (size[b] || 0) - (size[a] || 0) || a - b);
  }

  go(partner) {
    if (partner.row !== null && partner.row !== undefined) this.pick("batch", partner.row);
  }

  key(event) {
    if (event.target !== this.panel.root || event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === "w") { if (this.picked) this.clear(); else this.walk(0); return true; }
    if (event.key === "n" || event.key === "b") { this.walk(event.key === "n" ? 1 : -1); return true; }
    if (event.key === "Escape" && this.picked) { this.clear(); return true; }
    if (this.told && this.picked && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      const last = this.told.partners.length - 1;
      this.choose(Math.max(0, Math.min(last, this.chosen + (event.key === "ArrowDown" ? 1 : -1))));
      return true;
    }
    return false;
  }

  choose(k) {
    this.chosen = k;
    this.render();
    this.panel.later();
  }

  // Asks anew for each step and phase; while it trains once a second.
  ask() {
    const { state, epoch, tab } = this.panel;
    if (!this.panel.hello || !this.live || state.state === "recorded") return;
    const wants = this.shows || this.strongest || (this.picked && this.picked.of === "batch");
    if (!wants && !this.picked) return;
    const moment = [epoch, state.step, state.phase && state.phase.number].join();
    const [why, batch] = [moment + JSON.stringify(this.picked), moment + this.strongest];
    if ((!this.picked || why === this.askedWhy) && (!wants || batch === this.askedBatch)) return;
    const wait = state.state === "running" ? ASK_EVERY.running : ASK_EVERY.resting;
    const left = this.lastAsked + wait - performance.now();
    clearTimeout(this.timer);
    if (left > 0) { this.timer = setTimeout(() => this.ask(), left); return; }
    this.lastAsked = performance.now();
    let sent = true;
    // A row of a batch is known by its sample, which the next batch may not have: so the batch comes first.
    if (wants && batch !== this.askedBatch) {
      sent = tab.socket.send({ do: "batch" });
      if (sent) this.askedBatch = batch;
    }
    const known = !this.picked || this.picked.of === "map" || (this.batch && this.batch.moment === moment);
    if (this.picked && known && why !== this.askedWhy) {
      sent = tab.socket.send({ do: "why", ...this.picked }) && sent;
      if (sent) this.askedWhy = why;
    }
    this.unreachable = !sent;
    if (!sent) this.render();
  }

  message(kind, body) {
    if (kind === KIND.batch) this.takeBatch(jsonFrom(new Uint8Array(body)));
    else if (kind === KIND.why) {
      const told = jsonFrom(new Uint8Array(body));
      if (!this.picked || told.of !== this.picked.of || told.point !== this.picked.point) return;
      this.told = told;
      this.chosen = Math.min(this.chosen, Math.max(0, told.partners.length - 1));
      this.render();
    } else return;
    this.panel.later();
  }

  takeBatch(batch) {
    const { state, epoch } = this.panel;
    batch.moment = [epoch, state.step, state.phase && state.phase.number].join();
    const former = this.batch;
    this.batch = batch.rows ? batch : null;
    this.screen = null;
    if (this.picked && this.picked.of === "batch" && former && batch.step !== former.step) {
      const sample = former.samples[this.picked.point];
      const row = batch.samples ? batch.samples.indexOf(sample) : -1;
      if (row >= 0) this.pick("batch", row);
      else {
        this.clear();
        this.missed = "Sample " + sample + " is not in the batch of step " + batch.step + ". ";
        this.render();
      }
    }
    if (this.strongest && this.batch) {
      this.strongest = false;
      this.pick("batch", this.byForce()[0]);
    }
    this.ask();
  }

  draw() {
    this.ask();
    this.render();
  }

  paint(scene) {
    if (!this.live) return;
    const { panel } = this;
    this.screen = null;
    const phase = panel.state.phase;
    const { told, picked } = this;
    const [rings, forces] = [this.shows && this.batch && this.batch.xy, picked && told && told.xy];
    if (rings || forces) veil(scene);
    if (rings) {
      const arrows = !picked && (!phase || phase.name === "gradient");
      this.screen = drawBatch(scene, this.batch, panel.hello, arrows);
    }
    if (!forces) return;
    const at = picked.of === "map" ? [scene.screen[2 * picked.point], scene.screen[2 * picked.point + 1]] : null;
    drawForces(scene, told, at && Number.isFinite(at[0]) ? at : null, this.chosen, panel.hello.unit_circle);
  }

  hint() {
    if (this.panel.state.state === "recorded") {
      return "This is a recording: Play or Step trains it live, then its points can be asked.";
    }
    if (this.unreachable) return "Asking needs the direct connection to the server, which is not open now.";
    if (!this.live) return "Forces are kept of the last step alone: go to Newest to see them.";
    if (this.picked && this.told) {
      return "Blue arrows pull it closer to a partner, orange ones push it away, to one scale; the bold arrow is the " +
        "sum of all, to a scale of its own. Dashed lines lead to the partners, where the loss saw them before the " +
        "update. Keys: n and b other points, up and down the partners, Escape ends it.";
    }
    const rings = this.shows && this.batch && this.batch.xy ? " " + ringWords(this.batch, this.panel.state.phase) : "";
    return (this.missed || "") + "Click a point of the map, or press W in this view, to see what pulled and " +
      "pushed it in the last step." + rings;
  }

  render() {
    const { told, panel } = this;
    setText(this.find("why-hint"), this.hint());
    const has = Boolean(this.picked && told);
    this.find("why-body").hidden = !has;
    this.find("why-clear").disabled = !this.picked;
    if (!has || !panel.hello) return;
    this.missed = "";
    const key = [told.of, told.point, told.step, this.chosen, Boolean(panel.images), panel.themeKey, told.sentence].join();
    if (key === this.rendered) return;
    this.rendered = key;
    setText(this.find("why-sentence"), told.sentence || "");
    this.find("why-summary").setAttribute("aria-live", panel.state.state === "running" ? "off" : "polite");
    setText(this.find("why-summary"), forcesSummary(told, panel.hello));
    setText(this.find("why-moved"), movedWords(told, panel.hello.quality_on === "the points themselves"));
    const images = panel.images && told.sample !== undefined;
    this.find("why-picture").replaceChildren(...(images ? [thumbnail(panel.images, told.sample, 56)] : []));
    listPartners(this);
    tellFormula(this);
  }
}

PARTS.push((panel) => new Why(panel));
