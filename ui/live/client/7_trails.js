// Trails: where each point was in the frames before, fading. Off until somebody asks, as lines take time to draw.
const LONGEST_TRAIL = 12; // frames
const TRAIL_LINES = 16000; // line segments a drawing

class Trails {
  constructor(panel) {
    this.panel = panel;
    this.on = false;
    const button = panel.find("trails");
    button.onclick = () => {
      this.on = !this.on;
      button.setAttribute("aria-pressed", String(this.on));
      panel.later();
    };
    panel.map.under.push((scene) => { if (this.on) this.drawUnder(scene); });
  }

  drawUnder({ ctx, at, frame, theme }) {
    const { map, history, hello } = this.panel;
    const past = trailOf(history.frames, frame, TRAIL_LINES);
    if (past.length < 2) return;
    ctx.save();
    ctx.lineWidth = 1;
    for (let k = 1; k < past.length; k += 1) {
      ctx.globalAlpha = 0.15 + 0.55 * (k / past.length);
      const [before, after] = [past[k - 1], past[k]].map((one) => ({ ...toScreen(one, at), xy: one.xy }));
      hello.classes.forEach((_, c) => {
        if (map.hidden.has(c)) return;
        ctx.strokeStyle = classColour(theme, c);
        ctx.beginPath();
        for (const i of this.placesOf(c)) {
          if (map.bright && !map.bright[i]) continue;
          ctx.moveTo(...map.spread(i, before.left + before.x * before.xy[2 * i], before.top + before.y * before.xy[2 * i + 1], at));
          ctx.lineTo(...map.spread(i, after.left + after.x * after.xy[2 * i], after.top + after.y * after.xy[2 * i + 1], at));
        }
        ctx.stroke();
      });
    }
    ctx.restore();
  }

  reset(hello) {
    this.places = hello.classes.map(() => []);
    hello.index.forEach((sample, place) => this.places[hello.classOf[sample]].push(place));
  }

  placesOf(c) { return this.places[c]; }
}

PARTS.push((panel) => new Trails(panel));

// The frames up to the moment shown, oldest first, and the moment itself; fewer where there are many points.
function trailOf(frames, moment, lines) {
  const length = Math.max(2, Math.min(LONGEST_TRAIL, Math.floor(lines / Math.max(1, moment.points))));
  const before = frames.filter(({ step, points }) => step < moment.step && points === moment.points);
  return [...before.slice(-length), moment];
}
