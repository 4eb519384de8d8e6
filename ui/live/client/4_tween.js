// From one moment to the next in several drawings, where moments are far apart; at ten a second they are not.
const [APART, LONGEST] = [200, 300]; // ms
const LATE = 50; // ms between two drawings on a machine that has better things to do

class Tween {
  constructor() {
    this.past = null;
    this.target = null;
  }

  // A moment to be shown from now on; `still` shows it at once.
  aim(moment, still) {
    if (moment === this.target) {
      if (still) this.past = null;
      return;
    }
    const now = performance.now();
    const gap = now - (this.began || 0);
    const glide = !still && this.target && gap > APART && this.target.points === moment.points;
    this.past = glide ? this.target : null;
    this.lasts = Math.min(gap, LONGEST);
    this.began = now;
    this.drawn = now;
    this.target = moment;
  }

  stop() {
    this.past = null;
    this.target = null;
  }

  // How much of the way is done, 0 to 1: slow at both ends.
  get share() {
    if (!this.past) return 1;
    const now = performance.now();
    const t = now - this.drawn > LATE ? 1 : Math.min(1, (now - this.began) / this.lasts);
    this.drawn = now;
    if (t >= 1) this.past = null;
    return t * t * (3 - 2 * t);
  }

  get moving() {
    return this.past !== null;
  }
}
