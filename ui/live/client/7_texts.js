// What the panel says in words: the state, a summary under every chart, insights and gauges.
const WORDS = {
  queued: "waiting for its turn on the server",
  preparing: "preparing data and encoder",
  recorded: "a recording that came with the app: Play trains the settings shown live, from step 0",
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

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Texts under the charts; `at` is the place of the frame in the history, `moment` what map and histograms show.
function drawTexts(panel, frame, at, moment) {
  const hello = panel.hello;
  setText(panel.find("map-summary"), frame.points + " samples of " + hello.quality_on + ", " + hello.map_note);
  setText(panel.find("active-summary"), activeSentence(frame));
  setText(panel.find("histogram-summary"), histogramSummary(moment, hello));
  panel.find("histogram").setAttribute("aria-label", marksSentence(panel.shown === null && panel.state.marks ? panel.state : frame));
  setText(panel.find("loss-summary"), "Loss " + short(frame.loss) + " at step " + frame.step + ", " +
    short(panel.frames[0].loss) + " at step " + panel.frames[0].step + ".");
  const precise = latestKnown(panel.frames, "map_at_r", at);
  setText(panel.find("quality-summary"), "On " + hello.quality_on + ": recall@1 " + percent(frame.recall_at_1) +
    ", MAP@R " + percent(precise) + "; chance is " + percent(hello.chance) + ".");
  setText(panel.find("pairs-summary"), pairsSummary(frame));
  panel.find("heat-view").hidden = !frame.rows;
  drawInsights(panel.find("insights"), frame.insights.filter(({ kind }) => !SAID_ELSEWHERE.has(kind)));
  drawGauges(panel.find("gauges"), frame, hello);
}

function drawGauges(box, frame, hello) {
  const rows = [
    ["spread", short(frame.spread), "collapsed = 0"],
    ["effective rank", short(frame.effective_rank), "of " + hello.dim + ", collapsed = 1"],
    ["mean cosine", short(frame.mean_cosine), "collapsed = 1"],
    ["alignment", short(frame.alignment), "every class a point = 0"],
    ["uniformity", short(frame.uniformity), "collapsed = 0, more negative is more even"],
    ["gradient norm", short(frame.gradient_norm), "nothing to learn = 0"],
  ];
  if (!box.children.length) box.innerHTML = rows.map(([name]) =>
    `<div><dt><button type="button" class="term">${name}</button></dt><dd></dd><small></small></div>`).join("");
  rows.forEach(([, value, beside], k) => {
    setText(box.children[k].querySelector("dd"), value);
    setText(box.children[k].querySelector("small"), beside);
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
