// Keys, buttons and the slider of a panel.
function listenTo(panel) {
  panel.root.onkeydown = (event) => pressKey(panel, event);
  panel.find("slider").oninput = (event) => panel.show(Number(event.target.value));
  panel.find("newest").onclick = () => panel.show(Infinity);
  panel.find("in").onclick = () => panel.map.zoomBy(1.4);
  panel.find("out").onclick = () => panel.map.zoomBy(1 / 1.4);
  panel.find("fit").onclick = () => { panel.map.fit(); panel.later(); };
  panel.root.onclick = (event) => {
    const term = event.target.closest("button.term");
    if (term) panel.explain(term.textContent.trim());
  };
}

function pressKey(panel, event) {
  if (panel.parts.some((part) => part.key && part.key(event))) {
    event.preventDefault();
    return;
  }
  if (event.target !== panel.root && event.key !== " ") return;
  if (event.target !== panel.root && event.target.closest("button, input")) return;
  const last = panel.frames.length - 1;
  const at = panel.shown === null ? last : panel.shown;
  if (event.key === " ") panel.command(panel.state.state === "running" ? "pause" : "play");
  else if (event.key === "ArrowRight" && panel.shown === null) panel.command("step");
  else if (event.key === "ArrowRight") panel.show(at + 1);
  else if (event.key === "ArrowLeft") panel.show(at - 1);
  else if (event.key === "Home") panel.show(0);
  else if (event.key === "End") panel.show(last);
  else return;
  event.preventDefault();
}
