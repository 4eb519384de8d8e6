// Where the keyboard is. What a person was at may go when the page changes: Chromium then leaves the focus on the
// body, from where the next Tab begins anew. It goes to what the page names instead, else to the title.
const [SOON, PATIENCE] = [60, 10_000]; // ms
const PORTAL = "[data-testid=stPopoverBody], [role=dialog]";
const FOCUSABLE = "[tabindex], button, a[href], input, select, textarea";
const WATCHED = { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] };

// Also of what is not shown at the moment, which has no innerText of its own.
function nameOf(element) {
  return element.getAttribute("aria-label") || element.textContent || "";
}

function usable(element) {
  return element.isConnected && !element.disabled && element.getClientRects().length > 0;
}

// Inside of shadow roots, too.
function focused(root = document) {
  const at = root.activeElement;
  return (at && at.shadowRoot && focused(at.shadowRoot)) || at;
}

class Keeper {
  constructor() {
    this.path = []; // what had the focus, and all around it
    this.outside = null; // the last of those outside of popovers and dialogs
    this.own = null; // what has the focus because it was put there, by nobody's wish
    this.meanwhile = null; // what has the focus until a page that takes long has come to its end
    this.time = 0; // of the newest that was said
    this.once = ""; // what has it instead of the target, until anything else has
    this.watched = new WeakSet();
    const at = focused();
    if (at && at !== document.body) this.take(at);
    document.addEventListener("focusin", (event) => this.note(event));
    // A focusout would not tell who left: Streamlit moves and hides controls while a script runs.
    document.addEventListener("mousedown", () => setTimeout(() => this.forget()), true);
    document.addEventListener("keydown", ({ key }) => key === "Tab" && setTimeout(() => this.forget()), true);
    this.watch(document.body);
  }

  watch(place) {
    if (this.watched.has(place)) return;
    this.watched.add(place);
    new MutationObserver(() => this.look()).observe(place, WATCHED);
  }

  note(event) {
    const [at] = event.composedPath();
    if (at !== this.meanwhile) this.take(at);
  }

  take(at) {
    [this.own, this.meanwhile] = [null, null];
    if (at !== this.path[0]) this.once = "";
    this.path = [];
    for (let one = at; one; one = one.parentElement || one.getRootNode().host) this.path.push(one);
    this.name = nameOf(at);
    const root = at.getRootNode();
    if (root instanceof ShadowRoot) this.watch(root);
    this.portal = this.path.some((one) => one.matches(PORTAL));
    if (!this.portal) this.outside = at;
  }

  // Who leaves a control that is still there wants no other one.
  forget() {
    const [last] = this.path;
    if (this.nowhere && last.isConnected && !last.disabled && !this.changed) this.path = [];
  }

  // Streamlit mounts anew what it has moved, too: with what was said before, and even after what is said now.
  show({ target, view, once, time }) {
    if (time <= this.time) return;
    this.time = time;
    if (once) this.once = once;
    const another = this.view !== undefined && this.view !== view;
    [this.target, this.view] = [target, view];
    // The button that was pressed may serve as another one now, wherever that stands; and what nobody has chosen
    // gives way to what another view names, as by the browser's Forward.
    const last = this.path[0];
    if (another && last && last.isConnected && !this.portal && (last === this.own || this.name !== nameOf(last))) {
      this.changed = true;
      last.blur();
    }
    this.look();
  }

  get nowhere() {
    const [[last], at] = [this.path, focused()];
    return last && (!at || at === document.body || at === this.meanwhile || (at === last && last.disabled));
  }

  // By the page: a person leaves what is still there.
  get lost() {
    return this.nowhere && (this.changed || !usable(this.path[0]));
  }

  look() {
    if (this.planned || !this.lost) return;
    this.planned = true;
    this.since = performance.now();
    setTimeout(() => this.settle(), SOON);
  }

  // Once the page has stood for a while: what it names comes with the end of its script.
  settle(stood = 0) {
    const place = this.nowhere && this.place();
    const stands = place && document.querySelector("[data-test-script-state=notRunning]");
    if (!this.nowhere || (stands && stood === 2)) {
      [this.planned, this.changed, this.meanwhile] = [false, false, null];
      if (place) this.put(place);
      return;
    }
    if (place && !this.meanwhile && performance.now() - this.since > PATIENCE) this.put(place, true);
    setTimeout(() => this.settle(stands ? stood + 1 : 0), SOON);
  }

  put(place, meanwhile = false) {
    if (!place.matches(FOCUSABLE)) place.tabIndex = -1;
    if (meanwhile) this.meanwhile = place;
    else this.take(place);
    place.focus();
    if (!meanwhile) this.own = place;
  }

  place() {
    const [last] = this.path;
    if (usable(last) && !this.changed) return last;
    if (last.isConnected && last.disabled) return this.beside(last);
    const around = this.path.find((one) => usable(one) && one.getRootNode() instanceof ShadowRoot && one.matches(FOCUSABLE));
    if (around && around !== last) return around;
    if (this.portal && this.outside && usable(this.outside)) return this.outside;
    const named = [this.once, this.target].map((key) => key && document.querySelector(`.st-key-${key}`)).find(Boolean);
    return named ? named.querySelector("h1, h2, h3") || named : document.querySelector("[data-testid=stMain] h1");
  }

  // The next control that may be used, else the one before, where the one that was pressed may not any more.
  beside(last) {
    for (let up = last.parentElement; up; up = up.parentElement) {
      const found = [...up.querySelectorAll(FOCUSABLE)].filter((one) => usable(one) && one.tabIndex >= 0);
      const after = found.find((one) => last.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING);
      if (found.length) return after || found.at(-1);
    }
    return null;
  }
}

export default function mount({ data }) {
  window.losslabKeeper = window.losslabKeeper || new Keeper();
  window.losslabScrolling = window.losslabScrolling || new Scrolling();
  window.losslabPopovers = window.losslabPopovers || new Popovers();
  window.losslabKeeper.show(data);
}
