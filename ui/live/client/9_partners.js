// What stands below the map about a picked point: the ranked partners and the formula of the chosen one.
const STEP_VIEW = `
  <figcaption><span>Why did this point move? Its <button type="button" class="term">force</button>s in the last step</span>
    <span class="tools">
      <label class="tick"><input type="checkbox" class="show-batch"> Show the batch</label>
      <button type="button" class="why-back" aria-label="Previous point">&#9664;</button>
      <button type="button" class="why-next" aria-label="Next point">&#9654;</button>
      <button type="button" class="why-clear">Clear</button>
    </span></figcaption>
  <p class="summary why-hint"></p>
  <div class="why-body" hidden>
    <div class="why-head"><span class="why-picture"></span><div>
      <p class="why-sentence"></p><p class="summary why-summary" aria-live="polite"></p>
      <p class="summary why-moved"></p></div></div>
    <ol class="partners" aria-label="Partners by share of the force"></ol>
    <div class="formula-box"><p class="formula-title"></p><div class="formula"></div>
      <button type="button" class="why-go">Ask about this partner</button></div>
  </div>`;

// The partners with a force, one button each: pressing it shows its formula.
function listPartners(why) {
  const { told, panel } = why;
  const focused = why.find("partners").contains(panel.root.getRootNode().activeElement);
  const rows = told.partners.map((partner, k) => {
    const row = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(k === why.chosen));
    button.className = partner.closer ? "pull" : "push";
    const pictured = panel.images && partner.sample !== null && partner.sample !== undefined;
    if (pictured) button.append(thumbnail(panel.images, partner.sample, 28));
    const words = document.createElement("span");
    words.textContent = pullOrPush(partner) + partnerName(partner, panel.hello);
    const share = document.createElement("span");
    share.className = "share";
    share.textContent = shareWords(partner.share);
    const bar = document.createElement("i");
    bar.style.width = 100 * Math.min(1, partner.share / told.partners[0].share) + "%";
    button.append(words, share, bar);
    button.onclick = () => why.choose(k);
    row.append(button);
    return row;
  });
  if (told.others && told.others.count) {
    const rest = document.createElement("li");
    rest.className = "others";
    rest.textContent = told.others.count + " others together: " + shareWords(told.others.share);
    rows.push(rest);
  }
  why.find("partners").replaceChildren(...rows);
  if (focused && rows[why.chosen]) rows[why.chosen].firstChild.focus();
}

function tellFormula(why) {
  const { told, panel } = why;
  const partner = told.partners[why.chosen];
  why.find("formula-box").hidden = !partner;
  if (!partner) return;
  setText(why.find("formula-title"), told.loss_title + " loss, the pair with " + partnerName(partner, panel.hello) +
    (partner.positive ? " (positive)" : " (negative)"));
  why.find("formula").replaceChildren(...formulaLines(partner, told).map((text) => {
    const line = document.createElement("p");
    line.textContent = text;
    return line;
  }));
  why.find("why-go").hidden = partner.row === null || partner.row === undefined;
}
