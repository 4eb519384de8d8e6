// Which run this browser tab watches: remembered over reloads, followed by the socket, told when it is lost.
const ADOPTION = 2500; // ms for the server to answer that the former run is still there

class TabRun {
  // tellNote: says a sentence; ask: reaches Python; tellLink: how the connection is.
  constructor({ onPacket, tellLink, tellNote, ask }) {
    Object.assign(this, { tellLink, tellNote, ask });
    this.socket = new LiveSocket({
      onPacket,
      onState: tellLink,
      onUnreachable: () => ask("fallback", true),
      onLost: () => { this.lost = true; ask("lost", this.token); },
    });
    this.onhide = () => this.remember();
    window.addEventListener("pagehide", this.onhide);
  }

  connect(data) {
    this.store = data.store;
    const former = this.recall();
    const offered = !this.offered && former && former.token !== data.token && former.search === location.search;
    this.offered = true;
    if (offered) {
      // After a reload: ask for the run this tab had. The answer comes as new data, or not at all.
      this.ask("adopt", former.token);
      this.waiting = setTimeout(() => this.follow(data), ADOPTION);
      return;
    }
    this.follow(data);
  }

  follow(data) {
    clearTimeout(this.waiting);
    const another = this.token && data.token !== this.token;
    if (another && (this.lost || this.socket.retrying)) {
      this.tellNote("The server no longer has the former run: it was restarted, or nobody watched. " +
        "This is a new one with the same settings; Play trains it.");
    }
    this.lost = false;
    this.token = data.token;
    this.remember();
    this.socket.open(data.path);
  }

  recall() {
    try { return JSON.parse(sessionStorage.getItem(this.store)); } catch { return null; }
  }

  remember() {
    if (!this.token) return;
    try {
      sessionStorage.setItem(this.store, JSON.stringify({ token: this.token, search: location.search }));
    } catch { /* storage is off: a reload starts a new run */ }
  }

  close() {
    clearTimeout(this.waiting);
    this.remember();
    window.removeEventListener("pagehide", this.onhide);
    this.socket.close();
  }
}
