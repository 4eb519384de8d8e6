// One run of the replay: its map, its distances, and the line it has in the curves.
const LINES = [[0, []], [4, [7, 4]], [2, [2, 3]], [3, [8, 3, 2, 3]]]; // places in the palette, and dashes

function element(name, parent, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  parent.append(made);
  return made;
}

function figureIn(place, title, note, shape) {
  const figure = element("figure", place);
  const caption = element("figcaption", figure, "", title);
  if (note) {
    caption.append(document.createElement("br"));
    element("small", caption, "", note);
  }
  const frame = element("div", figure, "frame " + shape);
  const canvas = element("canvas", frame);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", title);
  return { figure, frame, canvas };
}

// A map that is seen from where all maps of the replay are seen.
class SharedMap extends EmbeddingMap {
  constructor(canvas, tip, replay) {
    super(canvas, tip, () => replay.follow(this));
    this.replay = replay;
  }

  follow() {
    if (!this.held || !this.view) this.view = this.replay.wholeView();
  }
}

class Lane {
  constructor(replay, run, place) {
    this.run = run;
    const direction = run.inverted ? "larger is closer" : "smaller is closer";
    const map = figureIn(replay.find("maps"), run.title, "", "square");
    map.canvas.classList.add("map");
    const tip = element("div", map.frame, "tip");
    tip.hidden = true;
    this.map = new SharedMap(map.canvas, tip, replay);
    this.map.reset(run.hello);
    this.map.hidden = replay.hidden;
    const bars = figureIn(replay.find("distances"), run.title, run.distance + ", " + direction, "middle");
    bars.canvas.classList.add("histogram");
    this.histogram = new Histogram(bars.canvas);
    this.words = element("p", bars.figure, "summary");
    [this.colour, this.dash] = LINES[place];
    this.figures = [map.figure, bars.figure];
  }

  draw(moment, replay, still) {
    this.map.draw(this.run.frames[moment], replay.theme, replay.themeKey, still);
  }

  drawDistances(moment, replay) {
    const frame = this.run.frames[moment];
    this.histogram.draw(frame, this.run.hello, replay.theme, null);
    setWords(this.words, histogramSummary(frame, this.run.hello));
  }
}

function setWords(place, text) {
  if (place.textContent !== text) place.textContent = text;
}
