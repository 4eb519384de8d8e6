// Slow motion: one step in six phases, each with its sentence, and the view that it concerns marked.
const PHASE_NAMES = ["sample", "embed", "pair", "loss", "gradient", "update"];
const PICTURED = 48;

class Phases {
  constructor(panel) {
    this.panel = panel;
    this.box = document.createElement("section");
    this.box.className = "phases-view";
    this.box.setAttribute("aria-label", "Phases of a step");
    this.box.hidden = true;
    this.box.innerHTML = "<ol class=\"phases\">" + PHASE_NAMES.map((name, k) =>
      `<li data-phase="${name}"><span>${k + 1}</span> ${name}</li>`).join("") + "</ol>" +
      "<p class=\"caption\" aria-live=\"polite\"></p><div class=\"drawn\" hidden></div>";
    panel.root.querySelector(".views").before(this.box);
    this.marked = "";
  }

  key(event) {
    if (event.target !== this.panel.root || event.key !== "p" || event.ctrlKey || event.metaKey || event.altKey) return false;
    this.panel.command("phase");
    return true;
  }

  reset() {
    this.mark(null);
  }

  draw() {
    const phase = this.panel.shown === null ? this.panel.state.phase : null;
    const batch = this.panel.why.batch;
    const key = JSON.stringify([phase, batch && batch.moment, Boolean(this.panel.images), this.panel.themeKey]);
    if (key === this.marked) return;
    this.mark(phase);
    this.marked = key;
  }

  mark(phase) {
    this.marked = "";
    this.box.hidden = !phase;
    const concerned = new Set(((phase && phase.views) || []).map((name) => name + "-view"));
    for (const view of this.panel.root.querySelectorAll(".views figure, .phases-view")) {
      view.classList.toggle("concerned", [...view.classList].some((name) => concerned.has(name)));
    }
    this.panel.root.dataset.phase = phase ? phase.name || "" : "";
    if (!phase) return;
    for (const item of this.box.querySelectorAll("li[data-phase]")) {
      const place = PHASE_NAMES.indexOf(item.dataset.phase) + 1;
      item.className = place < phase.number ? "done" : "";
      if (place === phase.number) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    }
    setText(this.box.querySelector(".caption"), phaseWords(phase));
    this.drawSamples(phase);
  }

  // The batch that was drawn: how many of each class, and the first pictures.
  drawSamples(phase) {
    const { hello, images, theme, why } = this.panel;
    const box = this.box.querySelector(".drawn");
    const batch = why.batch;
    box.hidden = !(phase.number <= 2 && batch && batch.samples && hello);
    if (box.hidden) return;
    const counts = new Map();
    batch.samples.forEach((sample) => counts.set(hello.classOf[sample], (counts.get(hello.classOf[sample]) || 0) + 1));
    const chips = [...counts].sort((a, b) => a[0] - b[0]).map(([c, count]) => {
      const chip = document.createElement("span");
      chip.className = "chip";
      chip.append(classIcon(theme, c), document.createTextNode(hello.classes[c] + ": " + count));
      return chip;
    });
    const pictures = images ? batch.samples.slice(0, PICTURED).map((sample) => thumbnail(images, sample, 28)) : [];
    box.replaceChildren(...chips, ...pictures);
  }
}

function classIcon(theme, c) {
  const icon = document.createElement("canvas");
  const ratio = window.devicePixelRatio || 1;
  icon.width = 16 * ratio;
  icon.height = 16 * ratio;
  const ctx = icon.getContext("2d");
  ctx.scale(ratio, ratio);
  drawShape(ctx, classShape(c), 8, 8, 4.6, classColour(theme, c), theme.background);
  return icon;
}

PARTS.push((panel) => new Phases(panel));
