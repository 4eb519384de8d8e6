// Frames over a WebSocket of the page's own server: the next one is asked for only after this one is drawn.
const FIRST_WAIT = 3000;
const LONGEST_PAUSE = 2000; // ms between two attempts

class LiveSocket {
  constructor({ onPacket, onState, onUnreachable, onLost }) {
    Object.assign(this, { onPacket, onState, onUnreachable, onLost });
    this.attempt = 0;
    this.everOpen = false;
    this.retrying = false;
  }

  open(path) {
    if (path === this.path) return;
    this.close();
    this.path = path;
    this.everOpen = false;
    this.attempt = 0;
    this.connect();
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss://" : "ws://";
    const socket = new WebSocket(scheme + location.host + this.path);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    const patience = this.everOpen
      ? null
      : setTimeout(() => { if (!this.everOpen) this.give(socket); }, FIRST_WAIT);
    socket.onopen = () => {
      clearTimeout(patience);
      this.everOpen = true;
      this.retrying = false;
      this.attempt = 0;
      this.onState("connected");
    };
    socket.onmessage = (event) => { if (this.socket === socket) this.onPacket(event.data); };
    socket.onclose = (event) => {
      clearTimeout(patience);
      if (this.socket !== socket) return;
      this.socket = null;
      if (event.code === 4404) this.onLost();
      else if (!this.everOpen) this.give(null);
      else this.retry();
    };
  }

  give(socket) {
    this.path = null;
    this.socket = null;
    if (socket) socket.close();
    this.onUnreachable();
  }

  retry() {
    this.retrying = true;
    this.attempt += 1;
    this.onState("reconnecting", this.attempt > 3 && "The server does not answer. This page goes on by itself once it is back.");
    this.timer = setTimeout(() => this.connect(), Math.min(LONGEST_PAUSE, 250 * 2 ** this.attempt));
  }

  send(message) {
    if (!this.socket || this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  close() {
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = null;
    this.path = null;
    if (socket) socket.close();
  }
}
