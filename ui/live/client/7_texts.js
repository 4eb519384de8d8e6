// What the panel says in words: the state, a summary under every chart, insights and gauges.
const WORDS = {
  queued: "waiting for its turn on the server",
  preparing: "preparing data and encoder",
  recorded: "a recording: Play trains the settings shown live, from step 0",
  ready: "ready: press Play",
  running: "training",
  paused: "paused: press Play to go on",
  finished: "finished: Play trains on",
  diverged: "stopped: the numbers diverged",
  failed: "stopped",
  closed: "closed",
};

// These insights already stand beside their figure: in the histogram's sentence and in the box above.
const SAID_ELSEWHERE = new Set(["active_share", "divergence"]);

// A number and its unit stay on one line.
const glued = (text) => text.replace(/(\d) %/g, "$1\u00a0%").replace(/(recall@1|MAP@R) (?=\d)/g, "$1\u00a0");

function setText(element, words) {
  const text = glued(words);
  if (element.textContent !== text) element.textContent = text;
}

// Texts under the charts; `at` is the place of the frame in the history, `moment` what map and histograms show.
function drawTexts(panel, frame, at, moment) {
  const hello = panel.hello;
  setText(panel.find("map-summary"), frame.points + " samples of " + hello.quality_on + ", " + mapNote(moment, hello) + "." +
    (Number.isFinite(frame.recall_at_1) ? " The nearest other one is a positive for " + percent(frame.recall_at_1) + " of them." : ""));
  setText(panel.find("active-summary"), activeSentence(frame));
  setText(panel.find("histogram-summary"), histogramSummary(moment, hello));
  panel.find("histogram").setAttribute("aria-label", marksSentence(panel.shown === null && panel.state.marks ? panel.state : frame));
  const lossAt = ({ loss, step }) => short(loss) + " at step " + step;
  const losses = frame.step === panel.frames[0].step ? [frame] : [frame, panel.frames[0]];
  setText(panel.find("loss-summary"), "Loss " + losses.map(lossAt).join(", ") + ".");
  setText(panel.find("quality-summary"), qualitySummary(panel.frames, frame, at, hello));
  setText(panel.find("pairs-summary"), pairsSummary(frame, hello));
  panel.find("heat-view").hidden = !frame.rows;
  panel.find("heat-row").hidden = hello.pairwise === false;
  drawInsights(panel.find("insights"), frame.insights.filter(({ kind }) => !SAID_ELSEWHERE.has(kind)));
  drawGauges(panel.find("gauges"), frame, hello);
  announce(panel, frame.insights.filter(({ kind, cure }) => cure && !SAID_ELSEWHERE.has(kind)));
}

// MAP@R is measured at some steps only: the last of them is told with its step.
function qualitySummary(frames, frame, at, hello) {
  const last = latestWith(frames, "map_at_r", at);
  const when = last && last.step !== frame.step ? " at step " + last.step : "";
  return "On " + hello.quality_on + ": recall@1 " + percent(frame.recall_at_1) + " (chance is " + percent(hello.chance) +
    "), MAP@R " + percent(last ? last.map_at_r : NaN) + when + ".";
}

// A trouble is told aloud when it comes, and not again while only its figures change.
function announce(panel, troubles) {
  const kinds = troubles.map(({ kind }) => kind).join();
  if (kinds === panel.announced) return;
  panel.announced = kinds;
  setText(panel.find("announce"), troubles.map(({ sentence }) => sentence).join(" "));
}

// Where the points are, as the map shows them: zero vectors lie at the origin, not on the circle.
function mapNote(frame, hello) {
  if (hello.dim > 2) return hello.map_note;
  const near = hello.unit_circle ? 0.5 : 1e-12;
  let away = 0;
  for (let i = 0; i < frame.points; i += 1) {
    const [x, y] = [frame.x_low + frame.scale * frame.xy[2 * i], frame.y_low + frame.scale * frame.xy[2 * i + 1]];
    if (Math.hypot(x, y) > near) away += 1;
  }
  if (!away) return "all at the origin: every embedding is the zero vector";
  if (!hello.unit_circle || away === frame.points) return hello.map_note;
  return frame.points - away + " of them at the origin (zero vectors), the others " + hello.map_note;
}

// Its value and what is said beside it.
function meanCosine({ points, spread, mean_cosine: value }) {
  if (points > 1 && Number.isNaN(value)) {
    return ["-", spread === 0 ? "undefined: all embeddings are zero vectors" : "undefined: only one is no zero vector"];
  }
  return [short(value), "collapsed = 1"];
}

function activeSentence(frame) {
  const found = frame.insights.find(({ kind }) => kind === "active_share");
  return found ? found.sentence : "This loss does not say which pairs of the batch are active.";
}

function drawGauges(box, frame, hello) {
  const rows = [
    ["spread", short(frame.spread), "collapsed = 0"],
    ["effective rank", short(frame.effective_rank), "of " + hello.dim + ", collapsed = 1"],
    ["mean cosine", ...meanCosine(frame)],
    ["alignment", short(frame.alignment), (hello.aligned || "every class a point") + " = 0"],
    ["uniformity", short(frame.uniformity), "collapsed = 0, more negative is more even"],
    ["gradient norm", short(frame.gradient_norm), "no gradient reaches the encoder = 0"],
  ];
  if (!box.children.length) box.innerHTML = rows.map(([name]) =>
    `<div><dt><button type="button" class="term">${name}</button></dt><dd></dd><dd class="beside"></dd></div>`).join("");
  rows.forEach(([, value, beside], k) => {
    setText(box.children[k].querySelector("dd"), value);
    setText(box.children[k].querySelector(".beside"), beside);
  });
}

function drawInsights(list, found) {
  const key = JSON.stringify(found);
  if (key === list.dataset.key) return;
  list.dataset.key = key;
  list.hidden = found.length === 0;
  list.replaceChildren(...found.map(({ kind, sentence, cure }) => {
    const row = document.createElement("li");
    row.dataset.kind = kind;
    row.className = cure ? "trouble" : "";
    row.textContent = cure ? sentence + " " + cure : sentence;
    return row;
  }));
}
