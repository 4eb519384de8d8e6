// What was received of a run, and the moment shown: the newest one, or one from the history.
const KEPT_FRAMES = 500;

class History {
  constructor() {
    this.wanted = null; // the step to show as soon as its frame is there
    this.clear();
  }

  clear() {
    if (this.frames && this.frames.length) this.wanted = null; // it belonged to the former recording
    this.frames = [];
    this.glance = null;
    this.shown = null; // null follows the newest frame
  }

  get live() {
    return this.shown === null;
  }

  // Place of the frame shown.
  get at() {
    return this.live ? this.frames.length - 1 : this.shown;
  }

  get newestStep() {
    return this.frames.length ? this.moment(this.frames.at(-1)).step : 0;
  }

  show(place) {
    this.wanted = null;
    this.shown = place >= this.frames.length - 1 ? null : Math.max(0, place);
  }

  add(frame) {
    frame.arrived = performance.now();
    let at = this.frames.length;
    while (at > 0 && this.frames[at - 1].step > frame.step) at -= 1;
    if (at > 0 && this.frames[at - 1].step === frame.step) {
      this.frames[at - 1] = frame;
      return;
    }
    this.frames.splice(at, 0, frame);
    if (!this.live && at <= this.shown) this.shown += 1;
    this.find();
  }

  find() {
    if (this.wanted === null) return;
    const at = this.frames.findIndex(({ step }) => step === this.wanted);
    if (at >= 0 && at < this.frames.length - 1) this.show(at);
  }

  thin() {
    if (this.frames.length <= KEPT_FRAMES) return;
    const newest = this.frames.length - 1;
    const kept = this.live ? null : this.frames[this.shown];
    this.frames = this.frames.filter((frame, k) => k % 2 === 0 || k > newest - 50 || frame === kept);
    this.shown = kept === null ? null : this.frames.indexOf(kept);
  }

  // What map and histograms show: a glance where it is newer than the newest frame.
  moment(frame) {
    const newer = this.live && this.glance && this.glance.step > frame.step;
    if (!newer) return frame;
    const known = this.merged && this.merged.glance === this.glance && this.merged.frame === frame;
    if (!known) this.merged = { ...frame, ...this.glance, glance: this.glance, frame };
    return this.merged;
  }
}
