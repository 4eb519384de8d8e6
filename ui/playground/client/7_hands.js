// Pointer, keys, buttons.
const NEAR = 3; // px under which a press is a click
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

Playground.prototype.listen = function listen() {
  const on = (name, kind, act) => this.find(name).addEventListener(kind, act);
  on("undo", "click", () => this.undo());
  on("add", "click", () => this.add());
  on("remove", "click", () => this.remove(this.selected));
  on("run", "click", () => this.play());
  on("step", "click", () => this.step(true));
  on("reset", "click", () => this.reset());
  on("class", "change", (event) => this.setClass(this.selected, Number(event.target.value)));
  on("rate", "change", (event) => { this.rate = event.target.value; this.talk.rest(); });
  on("follow", "change", (event) => { this.follow = Number(event.target.value); this.talk.rest(); this.later(); });
  on("starts", "change", (event) => {
    const start = this.data.starts[Number(event.target.value)];
    if (event.target.value === "" || !start) return;
    this.pause();
    this.ended = "";
    this.change(() => { this.points = parsePoints(start[2]); this.selected = 0; });
  });
  on("boards", "pointerdown", (event) => this.grab(event));
  on("boards", "pointermove", (event) => this.drag(event));
  for (const kind of ["pointerup", "pointercancel", "lostpointercapture"]) on("boards", kind, (event) => this.drop(event, kind));
  on("boards", "focusin", (event) => {
    const dot = event.target.closest(".point");
    if (dot) this.select(Number(dot.dataset.point));
  });
  this.root.addEventListener("keydown", (event) => this.key(event));
};

Playground.prototype.grab = function grab(event) {
  const dot = event.target.closest(".point");
  if (!dot || event.button) return;
  const k = Number(dot.dataset.point);
  const board = this.boards.find((one) => one.svg.contains(dot));
  const point = board.locate(event);
  const own = this.points[k];
  this.held = {
    k, board, pointer: event.pointerId, again: k === this.selected && this.hadFocus(dot), far: false,
    at: [event.clientX, event.clientY], off: [own.x - point.x, own.y - point.y], name: `drag ${performance.now()}`,
  };
  board.svg.setPointerCapture(event.pointerId);
  dot.focus({ focusVisible: false });
  this.select(k);
  event.preventDefault();
};

// A first click on the point that happens to be selected only takes the focus.
Playground.prototype.hadFocus = function hadFocus(dot) {
  return this.root.getRootNode().activeElement === dot;
};

Playground.prototype.drag = function drag(event) {
  const { held } = this;
  if (!held || event.pointerId !== held.pointer) return;
  const way = Math.hypot(event.clientX - held.at[0], event.clientY - held.at[1]);
  if (!held.far && way < NEAR) return;
  held.far = true;
  const { x, y } = held.board.locate(event);
  this.changed = performance.now();
  this.place(held.k, x + held.off[0], y + held.off[1], held.name, event.timeStamp);
};

Playground.prototype.drop = function drop(event, kind) {
  const { held } = this;
  if (!held || event.pointerId !== held.pointer) return;
  this.held = null;
  if (kind === "pointerup" && !held.far && held.again) this.nextClass(held.k);
};

Playground.prototype.key = function key(event) {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
    this.undo();
    return this.used(event);
  }
  const dot = event.target.closest(".point");
  if (!dot || event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const k = Number(dot.dataset.point);
  if (MOVES[event.key]) this.nudge(k, MOVES[event.key], event.shiftKey);
  else if (event.key >= "1" && event.key <= String(CLASSES)) this.setClass(k, Number(event.key) - 1);
  else if (event.key === "c" || event.key === "C" || event.key === "Enter" || event.key === " ") this.nextClass(k);
  else if (event.key === "Delete" || event.key === "Backspace") this.remove(k);
  else if (event.key === "+" || event.key === "=") this.add();
  else return undefined;
  this.refocus(dot);
  return this.used(event);
};

// Keys that mean something here must not reach the page, which has its own.
Playground.prototype.used = function used(event) {
  event.preventDefault();
  event.stopPropagation();
};

Playground.prototype.nudge = function nudge(k, [dx, dy], far) {
  const point = this.points[k];
  const name = `keys ${k}`;
  if (this.space === "circle") {
    const turn = (Math.PI / 180) * (far ? 10 : 1) * -(dx || -dy);
    const angle = Math.atan2(point.y, point.x) + turn;
    return this.place(k, Math.cos(angle), Math.sin(angle), name);
  }
  const size = far ? 0.2 : 0.02;
  return this.place(k, point.x + dx * size, point.y + dy * size, name);
};

// After a point came or went the focus stays on the selected one.
Playground.prototype.refocus = function refocus(dot) {
  requestAnimationFrame(() => {
    const board = this.boards.find((one) => one.svg.contains(dot)) || this.boards[0];
    const wanted = board && board.dots[this.selected];
    if (wanted && this.root.getRootNode().activeElement !== wanted) wanted.focus();
  });
};

const PLAYGROUNDS = new WeakMap();

export default function mount(component) {
  const host = component.parentElement;
  if (!PLAYGROUNDS.has(host)) PLAYGROUNDS.set(host, new Playground(host));
  const playground = PLAYGROUNDS.get(host);
  playground.configure(component);
  return () => { playground.close(); PLAYGROUNDS.delete(host); };
}
