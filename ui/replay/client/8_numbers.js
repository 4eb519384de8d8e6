// The table of numbers, its meanings, and the small charts over the steps.
class Numbers {
  constructor(replay) {
    const { about } = replay;
    const table = document.createElement("table");
    replay.find("numbers").replaceChildren(table);
    const head = element("tr", element("thead", table));
    element("td", head);
    about.runs.forEach((run) => { element("th", head, "", run.title).scope = "col"; });
    element("th", head, "against", "held against").scope = "col";
    const body = element("tbody", table);
    this.cells = about.moments[0].rows.map(([name]) => {
      const row = element("tr", body);
      element("th", row, "", name).scope = "row";
      return [...about.runs.map(() => element("td", row)), element("td", row, "against")];
    });
    this.rows = about.moments.map((moment) => moment.rows);
    const meanings = Object.entries(about.glossary).concat([["time a step", TIME]]);
    const list = replay.root.querySelector(".meanings ul");
    list.replaceChildren();
    meanings.forEach(([term, meaning]) => {
      const entry = element("li", list);
      element("strong", entry, "", term);
      entry.append(": " + meaning);
    });
  }

  draw(moment) {
    this.cells.forEach((cells, row) => cells.forEach((cell, column) => {
      const text = this.rows[moment][row][column + 1];
      const best = text.startsWith("**");
      cell.classList.toggle("best", best);
      setWords(cell, best ? text.slice(2, -2) : text);
    }));
  }
}

const TIME = "milliseconds of one update (sampling, encoder, loss, gradient, optimiser) that one core spends on " +
  "it, median of the steps without a frame. The runs take turns, so whatever else the machine does slows all " +
  "alike. Another machine has other times.";

class RunCurves {
  constructor(replay) {
    const { about } = replay;
    const place = replay.find("curves");
    place.replaceChildren();
    this.charts = about.measures.map((measure, k) => {
      const note = measure.better ? measure.better + " is better; " + measure.reference : measure.reference;
      const { canvas } = figureIn(place, measure.name, note, "low");
      canvas.classList.add("curve");
      return { canvas: new Curves(canvas), measure, k };
    });
    this.total = Math.max(...about.steps);
  }

  draw(step, replay) {
    const { about, theme, lanes } = replay;
    this.charts.forEach(({ canvas, measure, k }) => {
      const series = lanes.map(({ run, colour, dash }) => (
        { values: run.curves[k], colour: classColour(theme, colour), dash }));
      canvas.draw(series, theme, {
        total: this.total,
        cursor: step,
        fixed: measure.share ? [0, 1] : rangeOf(series),
        level: measure.name === "recall@1" ? about.chance : null,
      });
    });
  }

  // Which line is whose, as a small picture of it.
  drawKeys(replay) {
    const place = replay.find("runs");
    place.replaceChildren();
    replay.lanes.forEach(({ run, colour, dash }) => {
      const entry = element("span", place);
      const canvas = element("canvas", entry);
      entry.append(run.title);
      const open = openCanvas(canvas);
      if (!open) return;
      const { ctx, width, height } = open;
      ctx.strokeStyle = classColour(replay.theme, colour);
      ctx.lineWidth = 3;
      ctx.setLineDash(dash);
      ctx.beginPath();
      ctx.moveTo(0, height / 2);
      ctx.lineTo(width, height / 2);
      ctx.stroke();
    });
  }
}

// Uniformity is below 0 throughout, so its axis must not begin at 0.
function rangeOf(series) {
  const known = series.flatMap(({ values }) => values.map((value) => value[1]));
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 0.1;
  return known.length ? [low - room, high + room] : [0, 1];
}
