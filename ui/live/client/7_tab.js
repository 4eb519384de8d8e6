// Which run this browser tab watches: remembered over reloads, followed by the socket, told when it is lost.
const ADOPTION = 2500; // ms for the server to answer that the former run is still there
const QUESTIONS = [1000, 2000, 4000, 8000]; // ms to wait for a new run after each time it was asked for
const GONE = "The server no longer has the former run: it was restarted, or nobody watched for too long. " +
  "This is a new one with the same settings; Play trains it.";
const GOING = "The server no longer has this run: it was restarted, or nobody watched for too long. " +
  "A new one with the same settings is asked for.";

class TabRun {
  // tellNote: says a sentence; ask: reaches Python; tellLink: how the connection is.
  constructor({ onPacket, tellLink, tellNote, ask, stepShown }) {
    Object.assign(this, { tellLink, tellNote, ask, stepShown });
    this.socket = new LiveSocket({
      onPacket,
      onState: tellLink,
      onUnreachable: () => ask("fallback", true),
      onLost: () => this.lose(),
    });
    this.onhide = () => this.remember();
    window.addEventListener("pagehide", this.onhide);
  }

  connect(data) {
    this.store = data.store;
    const former = this.recall();
    if (former && former.gone && !this.offered) this.tellNote(GONE);
    const offered = !this.offered && former && former.token && former.token !== data.token && former.search === location.search;
    this.offered = true;
    if (offered) {
      // After a reload: ask for the run this tab had. The answer comes as new data, or not at all.
      this.ask("adopt", former.token + " " + (former.step || 0));
      this.waiting = setTimeout(() => this.follow(data), ADOPTION);
      return;
    }
    this.follow(data);
  }

  follow(data) {
    clearTimeout(this.waiting);
    const another = this.token && data.token !== this.token;
    if (another && (this.lost || this.socket.retrying)) this.tellNote(GONE);
    if (another || !this.token) this.lost = false;
    this.token = data.token;
    this.remember();
    this.socket.open(data.path);
  }

  lose() {
    this.lost = true;
    this.tellNote(GOING);
    this.askForAnother(0);
  }

  // Streamlit's own connection comes back in its own time, drops what it is told before that and runs no script
  // by itself. So the question is repeated; and where no answer comes at all the page is loaded anew.
  askForAnother(times) {
    clearTimeout(this.asking);
    if (!this.lost) return;
    if (times === QUESTIONS.length) {
      this.write({ gone: true });
      this.token = null;
      location.reload();
      return;
    }
    try { this.ask("lost", this.token); } catch { /* not connected yet */ }
    this.asking = setTimeout(() => this.askForAnother(times + 1), QUESTIONS[times]);
  }

  recall() {
    try { return JSON.parse(sessionStorage.getItem(this.store)); } catch { return null; }
  }

  remember() {
    if (this.token) this.write({ token: this.token, search: location.search, step: this.stepShown() });
  }

  write(what) {
    try { sessionStorage.setItem(this.store, JSON.stringify(what)); } catch { /* off: a reload starts a new run */ }
  }

  close() {
    clearTimeout(this.waiting);
    clearTimeout(this.asking);
    this.remember();
    window.removeEventListener("pagehide", this.onhide);
    this.socket.close();
  }
}
