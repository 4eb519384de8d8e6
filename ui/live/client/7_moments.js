// Tells Python where the run stands still and which moment of it is looked at. While it trains nothing is told.
const SETTLES = 300; // ms without a change
const MOVING_STATES = new Set(["waiting", "queued", "preparing", "running"]);

class Moments {
  constructor(panel) {
    this.panel = panel;
    this.known = null; // the step in view when the panel was drawn
    this.told = undefined; // what Python was told: undefined before the first moment, null since it trains
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
    this.timer = setTimeout(() => {
      const then = this.now;
      if (then === null || then.key === this.told) return;
      this.told = then.key;
      this.panel.trigger("moment", then.where);
    }, SETTLES);
  }

  close() {
    clearTimeout(this.timer);
  }
}
