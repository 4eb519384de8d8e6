// Tells Python where the run stands still and which moment of it is looked at. While it trains nothing is told.
// ms without a change. Python runs the page again for what it is told; a click that meets the beginning of
// such a run can be lost, so a mere pause is told late, and nothing while somebody's hand is moving.
const [SETTLES, RESTS, STILL] = [300, 1000, 400];
const INPUTS = ["pointerdown", "pointermove", "keydown"];
const MOVING_STATES = new Set(["waiting", "queued", "preparing", "running"]);

class Moments {
  constructor(panel) {
    this.panel = panel;
    this.known = null; // the step in view when the panel was drawn
    this.told = undefined; // what Python was told: undefined before the first moment, null since it trains
    this.touched = -Infinity;
    this.onInput = () => { this.touched = performance.now(); };
    INPUTS.forEach((kind) => document.addEventListener(kind, this.onInput, { capture: true, passive: true }));
  }

  // "newest" or the step scrubbed to, with what makes it another moment; null while there is none.
  get now() {
    const { history, state, epoch } = this.panel;
    if (MOVING_STATES.has(state.state) || !history.frames.length || history.wanted !== null) return null;
    const step = history.live ? state.step : history.frames[history.shown].step;
    const where = history.live ? "newest" : String(step);
    return { where, step, key: [epoch, state.state, state.step, where].join() };
  }

  tell() {
    const now = this.now;
    if (now === null) {
      if (this.told !== undefined && this.panel.state.state === "running") this.told = null;
      return;
    }
    // The script that drew the panel may have had it so; a run that was not begun it need not hear of.
    if (this.told === undefined) this.told = now.step === 0 || now.step === this.known ? now.key : null;
    if (now.key === this.told) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.settle(), now.where === "newest" ? RESTS : SETTLES);
  }

  settle() {
    const now = this.now;
    if (now === null || now.key === this.told) return;
    const wait = this.touched + STILL - performance.now();
    if (wait > 0) {
      this.timer = setTimeout(() => this.settle(), wait);
      return;
    }
    this.told = now.key;
    this.panel.trigger("moment", now.where);
  }

  close() {
    clearTimeout(this.timer);
    INPUTS.forEach((kind) => document.removeEventListener(kind, this.onInput, { capture: true }));
  }
}
