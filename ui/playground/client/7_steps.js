// Steps of gradient descent on one of the losses, alone or played on the page's own clock.
const STEP_PAUSE = 60; // ms from step to step while it plays
const STEPS = 1000;
const STILL = 1e-4; // a step that moves no point further has come to rest
const calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

Playground.prototype.play = function play() {
  if (this.playing) return this.pause();
  this.remember();
  this.playing = true;
  this.playedFrom = this.steps;
  this.ended = "";
  this.step(false);
  return this.later();
};

Playground.prototype.pause = function pause() {
  clearTimeout(this.nextStep);
  if (this.playing) this.talk.rest();
  this.playing = false;
  this.later();
};

Playground.prototype.step = function step(alone) {
  if (alone) {
    this.pause();
    this.remember();
    this.ended = "";
  }
  this.changing = "";
  this.owed = true;
  this.talk.next();
};

Playground.prototype.reset = function reset() {
  this.pause();
  this.remember();
  this.points = this.start;
  this.steps = 0;
  this.ended = "";
  this.selected = Math.min(this.selected, this.points.length - 1);
  this.moved();
};

Playground.prototype.takeAnswer = function takeAnswer(answer, question) {
  this.answers = answer.losses;
  if (question.step && question.version === this.version) this.afterStep(answer);
  else if (question.step && this.playing) this.step(false);
  const measured = question.version > 0 && !question.step;
  this.later(measured ? () => {
    this.root.delays.push(performance.now() - question.since);
    if (this.root.delays.length > 2000) this.root.delays.shift();
  } : null);
};

Playground.prototype.afterStep = function afterStep(answer) {
  const moves = answer.points.map(([x, y], k) => Math.hypot(x - this.points[k].x, y - this.points[k].y));
  this.points = this.points.map((p, k) => ({ ...p, x: answer.points[k][0], y: answer.points[k][1] }));
  this.steps += 1;
  this.version += 1;
  const still = Math.max(...moves) < STILL;
  if (still) this.ended = "at rest: no point moves further";
  else if (this.playing && this.steps - this.playedFrom >= STEPS) this.ended = `paused after ${STEPS} steps`;
  if (this.playing && this.ended) this.pause();
  else if (this.playing) this.nextStep = setTimeout(() => this.step(false), calm() ? 400 : STEP_PAUSE);
  if (!this.playing) this.talk.rest();
};
