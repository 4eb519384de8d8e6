// Questions and answers: one at a time, the newest configuration wins; regions once all is at rest.
const REST = 200; // ms without a change until regions are asked for
const TELL = 400; // and until the page's link is told

class Talk {
  constructor(lab) {
    this.lab = lab;
    this.number = 0;
    this.waiting = null; // the question without an answer yet
    this.socket = new LiveSocket({
      onPacket: (text) => this.take(JSON.parse(text)),
      onState: (words) => this.state(words),
      onUnreachable: () => lab.trigger("fallback", true),
      onLost: () => {},
    });
  }

  state(words) {
    this.lab.root.dataset.transport = words === "connected" ? "socket" : "none";
    this.lab.note(words === "connected" ? "" : "The connection to the server is interrupted; trying again.");
    this.waiting = null;
    if (words === "connected") this.begin();
  }

  begin() {
    this.waiting = null;
    if (!this.slow) this.socket.send({ do: "setup", ...this.lab.data.setup });
    this.regionOf = null;
    this.ask();
    this.rest();
  }

  question(what, more) {
    const { points, selected } = this.lab;
    this.number += 1;
    return { do: what, id: this.number, selected, points: points.map((p) => [p.x, p.y, p.c]), ...more };
  }

  // Asks about the points as they are; `since` is when a person moved them.
  ask(since = performance.now()) {
    this.lab.dirty = true;
    this.since = since;
    this.next();
  }

  next() {
    if (this.waiting) return;
    if (this.lab.owed) {
      const { rate, follow } = this.lab;
      this.lab.owed = false;
      this.lab.dirty = false;
      this.send(this.question("step", { rate: Number(rate), follow }));
    } else if (this.lab.dirty) {
      this.lab.dirty = false;
      this.send(this.question("place"));
    }
  }

  send(message) {
    // The server gives up a search for anything newer: what it has not found is asked for again at rest.
    if (this.lab.regions.filter(Boolean).length < this.lab.boards.length) this.regionOf = null;
    this.waiting = { id: message.id, step: message.do === "step", since: this.since, version: this.lab.version };
    if (this.slow) this.lab.trigger("ask", message);
    else if (!this.socket.send(message)) this.waiting = null;
  }

  take(answer) {
    if ("region" in answer) return this.lab.takeRegion(answer);
    if (!this.waiting || answer.id !== this.waiting.id) return undefined;
    const question = this.waiting;
    this.waiting = null;
    this.lab.takeAnswer(answer, question);
    this.next();
    return undefined;
  }

  close() {
    clearTimeout(this.resting);
    clearTimeout(this.telling);
    this.socket.close();
  }

  rest() {
    clearTimeout(this.resting);
    clearTimeout(this.telling);
    this.resting = setTimeout(() => this.askRegion(), REST);
    this.telling = setTimeout(() => this.lab.tell(), TELL);
  }

  askRegion() {
    if (this.slow || this.lab.playing || this.lab.regionKey() === this.regionOf) return;
    if (this.waiting || this.lab.dirty) return void this.rest();
    const question = this.question("region");
    this.regionOf = this.lab.regionKey();
    this.regionNumber = question.id;
    this.lab.regions = [];
    this.socket.send(question);
  }
}
