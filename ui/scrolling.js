// Equations and tables that are wider than their place: reached by Tab, so that arrow keys scroll them, and said.
const WIDE = ".katex-display, .stMarkdown table";
const CALM = 200; // ms between two looks

class Scrolling {
  constructor() {
    new MutationObserver(() => this.later()).observe(document.body, { childList: true, subtree: true });
    window.addEventListener("resize", () => this.later());
    this.later();
  }

  later() {
    if (this.planned) return;
    this.planned = setTimeout(() => { this.planned = null; this.look(); }, CALM);
  }

  look() {
    document.querySelectorAll(WIDE).forEach((one) => {
      const wide = one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== "visible";
      if (wide === one.hasAttribute("data-scrolls")) return;
      one.toggleAttribute("data-scrolls", wide);
      if (wide) one.tabIndex = 0;
      else one.removeAttribute("tabindex");
      if (one.tagName === "TABLE") return;
      one.setAttribute("role", wide ? "group" : "presentation");
      if (wide) one.setAttribute("aria-label", "Equation, wider than the screen");
      else one.removeAttribute("aria-label");
    });
  }
}
