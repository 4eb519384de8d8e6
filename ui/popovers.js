// Streamlit draws what a popover holds at the end of the page: Tab goes into it from its button, and on from there.
class Popovers {
  constructor() {
    document.addEventListener("keydown", (event) => event.key === "Tab" && this.tab(event));
  }

  tab(event) {
    const button = document.querySelector("[data-testid=stPopoverButton][aria-expanded=true]");
    const body = button && document.querySelector("[data-testid=stPopoverBody]");
    if (!body) return;
    const shown = (one) => usable(one) && one.tabIndex >= 0 && one.checkVisibility({ visibilityProperty: true });
    const inside = [...body.querySelectorAll(FOCUSABLE)].filter(shown);
    const at = focused();
    if (at === inside.at(-1) && !event.shiftKey) button.focus(); // from where this very Tab goes on
    else if (at === (event.shiftKey ? inside[0] : button)) {
      const to = event.shiftKey ? button : inside[0];
      if (!to) return;
      event.preventDefault();
      to.focus();
    }
  }
}
