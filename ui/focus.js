// Where the keyboard is. What a person was at may go when the page changes: Chromium then leaves the focus on the
// body, from where the next Tab begins anew. It goes to what the page names instead, else to the title.
const [SOON, PATIENCE, ONCE] = [60, 10_000, 4000]; // ms
const PORTAL = "[data-testid=stPopoverBody], [role=dialog]";
const FOCUSABLE = "[tabindex], button, a[href], input, select, textarea";
const WATCHED = { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] };

function nameOf(element) {
  return element.getAttribute("aria-label") || element.innerText || "";
}

// Inside of shadow roots, too.
function focused(root = document) {
  const at = root.activeElement;
  return (at && at.shadowRoot && focused(at.shadowRoot)) || at;
}

class Keeper {
  constructor() {
    this.path = []; // what had the focus, and all around it
    for (let at = focused(); at && at !== document.body; at = at.parentElement) this.path.push(at);
    this.name = this.path.length ? nameOf(this.path[0]) : "";
    this.outside = null; // the last of those outside of popovers and dialogs
    this.watched = new WeakSet();
    document.addEventListener("focusin", (event) => this.note(event));
    document.addEventListener("focusout", () => setTimeout(() => this.forget()));
    this.watch(document.body);
  }

  watch(place) {
    if (this.watched.has(place)) return;
    this.watched.add(place);
    new MutationObserver(() => this.look()).observe(place, WATCHED);
  }

  note(event) {
    this.path = event.composedPath().filter((one) => one instanceof Element);
    this.name = nameOf(this.path[0]);
    const root = this.path[0].getRootNode();
    if (root instanceof ShadowRoot) this.watch(root);
    this.portal = this.path.some((one) => one.matches(PORTAL));
    if (!this.portal) this.outside = this.path[0];
  }

  // Who leaves a control that is still there wants no other one.
  forget() {
    const [[last], at] = [this.path, focused()];
    if (last && last.isConnected && !last.disabled && !this.changed && (!at || at === document.body)) this.path = [];
  }

  show({ target, view, once }) {
    if (once) [this.once, this.onceUntil] = [once, performance.now() + ONCE];
    const another = this.view !== undefined && this.view !== view;
    [this.target, this.view] = [target, view];
    // The button that was pressed may serve as another one now, wherever that stands.
    const last = this.path[0];
    if (another && last && last.isConnected && !this.portal && this.name !== nameOf(last)) {
      this.changed = true;
      last.blur();
    }
    this.look();
  }

  get lost() {
    const [[last], at] = [this.path, focused()];
    const nowhere = !at || at === document.body || (at === last && last.disabled);
    if (!last || !nowhere) return false;
    return !last.isConnected || last.disabled || this.changed;
  }

  look() {
    if (this.planned || !this.lost) return;
    this.planned = true;
    this.since = performance.now();
    setTimeout(() => this.settle(), SOON);
  }

  // Once the page has stood for a while: what it names comes with the end of its script.
  settle(stood = 0) {
    const stands = this.lost && document.querySelector("[data-test-script-state=notRunning]") && this.place();
    const waits = performance.now() - this.since < PATIENCE;
    if (this.lost && waits && stood < 2) return void setTimeout(() => this.settle(stands ? stood + 1 : 0), SOON);
    const place = this.lost && this.place();
    this.planned = this.changed = false;
    if (!place) return undefined;
    if (!place.matches(FOCUSABLE)) place.tabIndex = -1;
    place.focus();
    this.onceUntil = 0;
    return undefined;
  }

  place() {
    const [last] = this.path;
    if (last.isConnected && last.disabled) return this.beside(last);
    const around = this.path.find((one) => one.isConnected && one.getRootNode() instanceof ShadowRoot && one.matches(FOCUSABLE));
    if (around && around !== last) return around;
    if (this.portal && this.outside && this.outside.isConnected) return this.outside;
    const key = performance.now() < this.onceUntil ? this.once : this.target;
    const named = key && document.querySelector(`.st-key-${key}`);
    return named ? named.querySelector("h1, h2, h3") || named : document.querySelector("[data-testid=stMain] h1");
  }

  // The next control that may be used, else the one before, where the one that was pressed may not any more.
  beside(last) {
    const usable = (one) => !one.disabled && one.tabIndex >= 0 && one.getClientRects().length;
    for (let up = last.parentElement; up; up = up.parentElement) {
      const found = [...up.querySelectorAll(FOCUSABLE)].filter(usable);
      const after = found.find((one) => last.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING);
      if (found.length) return after || found.at(-1);
    }
    return null;
  }
}

export default function mount({ data }) {
  window.losslabKeeper = window.losslabKeeper || new Keeper();
  window.losslabScrolling = window.losslabScrolling || new Scrolling();
  window.losslabKeeper.show(data);
}
