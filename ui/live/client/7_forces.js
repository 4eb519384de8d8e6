// What is said about the forces on one point, from an answer of the server (`lab.asked.why`).
const vector = (numbers, dim) => "(" + numbers.map(short).join(", ") + (dim > numbers.length ? ", \u2026" : "") + ")";
const minus = (text) => text.replace(/(?<!e)-(?=[\d.])/g, "\u2212");

function partnerName(partner, hello) {
  if (partner.proxy !== undefined) {
    return "proxy of " + hello.classes[partner.of_class] + (partner.proxy ? " (number " + (partner.proxy + 1) + ")" : "");
  }
  if (partner.sample === null || partner.sample === undefined) return "a reference";
  return hello.classes[hello.classOf[partner.sample]] + ", sample " + partner.sample;
}

const pullOrPush = (partner) => (partner.closer ? "pulled by " : "pushed by ");

function shareWords(share) {
  return share > 0 && share < 0.001 ? "less than 0.1 %" : short(100 * share) + " %";
}

// The formula of one pair with its numbers, line by line.
function formulaLines(partner, told) {
  const d = told.inverted ? "s" : "d";
  const both = partner.weight + partner.back;
  const lines = [d + " = " + short(partner.value) + "  (" + told.distance + ")"];
  const ends = partner.back ? "  (" + short(partner.weight) + " with this point as the anchor, " +
    short(partner.back) + " as the other end)" : "";
  lines.push("dL/d" + d + " = " + short(both) + ends);
  lines.push("\u2202" + d + "/\u2202e = " + short(partner.slope) + " \u00b7 " + vector(partner.unit, told.dim) +
    "  (slope times unit direction)");
  const plain = partner.unit.every((u, k) => {
    const made = -both * partner.slope * u;
    return Math.abs(made - partner.force[k]) <= 1e-3 * partner.size + 1e-12;
  });
  const made = plain ? "\u2212(" + short(both) + ") \u00b7 " + short(partner.slope) + " \u00b7 " +
    vector(partner.unit, told.dim) : "both ends added, each with its own slope";
  lines.push("force = \u2212dL/d" + d + " \u00b7 \u2202" + d + "/\u2202e = " + made + " = " +
    vector(partner.force, told.dim) + ", of size " + short(partner.size));
  return lines.map(minus);
}

// The whole answer in words, for those who do not see the arrows and for those who do.
function forcesSummary(told, hello) {
  if (told.reason && !told.size) return told.reason;
  if (!told.partners.length) {
    if (told.reason) return told.reason + " It is of size " + short(told.size) + ".";
    return "No pair pulls or pushes it: the loss has nothing against where it stands, so its gradient is 0.";
  }
  const first = told.partners[0];
  const sides = [[told.pulls, "pulls it closer", "pull it closer"], [told.pushes, "pushes it away", "push it away"]];
  const words = sides.filter(([side]) => side.count).map(([{ count, share }, one, many]) =>
    count + " " + (count === 1 ? one : many) + " with " + shareWords(share) + " of all force").join(", ") +
    ". The strongest: " + pullOrPush(first) + partnerName(first, hello) + ", " + shareWords(first.share) +
    ". All together: " + minus(vector(told.total, told.dim)) + ", of size " + short(told.size) +
    ", minus the gradient of the loss";
  if (told.rest > 1e-5) {
    return words + "; a part of size " + short(told.rest * told.size) +
      " comes from no pair, but from the embedding itself, such as its norm.";
  }
  return words + " (they differ by " + short(told.rest) + " of its size).";
}

// How far it really went, and why that is not simply along the force.
function movedWords(told, free) {
  const { moved } = told;
  if (!moved) return "";
  if (!moved.size) return "The update did not move it.";
  const along = moved.along > 0.95 ? "straight along its force" : moved.along > 0.3 ? "roughly along its force"
    : moved.along > -0.3 ? "across its force" : "against its force";
  const way = "The update moved it by " + short(moved.size) + ", " + along + " (cosine " + short(moved.along) + ")";
  if (moved.along > 0.95) return way + ".";
  const why = free ? "the optimiser scales and remembers gradients"
    : "an encoder moves all points at once, and the optimiser scales and remembers gradients";
  return way + ": " + why + ".";
}

// One phase of a step in words.
function phaseWords(phase) {
  if (!phase.caption) return phase.reason || "";
  const next = phase.number === phase.of ? "That was the whole step: Phase begins the next." : "";
  return "Step " + phase.step + ", phase " + phase.number + " of " + phase.of + ", " + phase.name + ". " + phase.caption +
    (next ? " " + next : "");
}

// What the rings and arrows of the batch are.
function ringWords(batch, phase) {
  const rings = "Rings are the " + batch.rows + " samples of the batch of step " + batch.step;
  if (phase && phase.name === "update") return rings + ", where they stood before the update; lines lead to where it moved them.";
  if (phase && phase.name !== "gradient") return rings + ".";
  return rings + ", where they stood before the update; arrows are the force on each, to one scale.";
}
