// Review: a game move by move, its analysis, and variations to try.

import { ask, Connection, post, stateWords } from "./api.js";
import { Board } from "./board.js";
import { BLANK, field, h, modelOptions, setText } from "./dom.js";
import { pointName, text } from "./strings.js";
import { Thoughts } from "./thoughts.js";

const MISTAKE = 0.1; // of the chance to win, from which a move is listed
const PATIENCE = 60; // milliseconds from a step to the question about it: a slider makes many steps
const READOUTS = [25, 50, 100, 200, 400];

export class ReviewPage {
  #game = null;
  #number = 0;
  #variation = [];
  #position = null; // what the server said about the position that is shown
  #question = 0; // which position that is: answers about others come too late
  #reports = null;
  #thoughts = null;
  #looking = null;

  constructor(site, announce) {
    Object.assign(this, { site, announce });
    this.board = new Board({ size: site.size, onPlay: (move) => this.#try(move), onKey: (key) => this.#shortcut(key) });
    this.thoughts = new Thoughts({ board: this.board, view: "visits", views: ["off", "visits", "policy"],
      onView: () => this.#look(), onMove: (number) => this.#goTo(number), onTry: (move) => this.#try(move) });
    this.connection = new Connection("/ws/review", {
      onOpen: () => this.#look(),
      onState: (state) => {
        setText(this.error, stateWords(state));
        if (state !== "open") this.#working(false);
      },
      handlers: {
        position: (message) => this.#showPosition(message),
        thoughts: (message) => this.#showThoughts(message),
        progress: (message) => this.#showProgress(message),
        report: (message) => this.#showReport(message),
        error: (message) => { setText(this.error, message.message); this.#working(false); },
      },
    });
    this.element = this.#build();
    this.#show();
  }

  #build() {
    this.error = h("p", { class: "error", role: "alert" });
    this.title = h("h2", { class: "status" }, text.review.noGame);
    this.facts = h("p", { class: "quiet-text detail" }, BLANK);
    this.slider = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": text.review.slider,
      oninput: () => this.#goTo(Number(this.slider.value)) });
    const step = (label, sign, to) => h("button", { type: "button", "aria-label": label, title: label,
      onclick: () => this.#goTo(to()) }, sign);
    const total = () => (this.#game ? this.#game.moves.length : 0);
    this.where = h("p", { class: "quiet-text" }, BLANK);
    this.back = h("button", { type: "button", onclick: () => this.#goTo(this.#number) }, text.review.back);
    this.undo = h("button", { type: "button", onclick: () => this.#takeBack() }, text.review.undo);
    this.mover = h("div", { class: "mover" },
      step(text.review.first, "⇤", () => 0), step(text.review.previous, "←", () => this.#number - 1), this.slider,
      step(text.review.next, "→", () => this.#number + 1), step(text.review.last, "⇥", total));
    return h("div", { class: "table review" },
      h("div", { class: "board-side" }, this.board.element, this.mover,
        h("div", { class: "variation" }, this.where, h("div", { class: "buttons" }, this.undo, this.back))),
      h("div", { class: "panel" },
        this.#opener(),
        h("section", { class: "card", "aria-label": text.review.heading }, this.title, this.facts, this.#analyzer(),
          this.error),
        this.thoughts.element, this.#lists()));
  }

  #opener() {
    const input = h("input", { type: "file", accept: ".sgf,application/x-go-sgf", id: "sgf-file",
      onchange: () => { if (input.files[0]) this.open({ file: input.files[0] }); input.value = ""; } });
    this.list = h("select", { onchange: () => { if (this.list.value) this.open({ path: this.list.value }); } });
    return h("section", { class: "card opener", "aria-label": text.review.open },
      h("div", { class: "row" }, input, h("label", { class: "button", for: "sgf-file" }, text.review.open),
        h("span", { class: "quiet-text" }, text.review.orDrop)),
      field(text.review.run, this.list));
  }

  #analyzer() {
    this.readouts = h("select", null, READOUTS.filter((count) => count <= this.site.readouts.most)
      .map((count) => h("option", { value: count }, String(count))));
    this.readouts.value = 100;
    this.model = h("select", { onchange: () => this.#look() }, modelOptions(this.site));
    this.model.value = this.site.default ?? "";
    this.analyze = h("button", { type: "button", class: "primary", disabled: true, onclick: () => this.#analyzeGame() },
      text.review.analyze);
    this.progress = h("progress", { max: 1, value: 0, "aria-label": text.review.analyze });
    this.progress.classList.add("waiting");
    return h("div", { class: "opener" },
      h("div", { class: "fields" }, field(text.review.model, this.model), field(text.review.readouts, this.readouts)),
      this.analyze, this.progress);
  }

  #lists() {
    this.mistakes = h("ul", { class: "mistakes" });
    this.comment = h("p", { class: "comment", tabindex: "0", "aria-label": text.review.comment });
    this.commentCard = h("section", { class: "card", "aria-label": text.review.comment },
      h("h3", null, text.review.comment), this.comment);
    return [h("section", { class: "card", "aria-label": text.review.mistakes }, h("h3", null, text.review.mistakes),
      this.mistakes), this.commentCard];
  }

  async enter() {
    this.connection.open();
    document.addEventListener("keydown", this.#step);
    try {
      const { games } = await ask("/api/games");
      this.list.replaceChildren(h("option", { value: "" }, games.length ? text.review.pick : text.review.none),
        ...games.map((game) => h("option", { value: game.path }, text.review.item(game))));
      if (this.#game?.name) this.list.value = this.#game.name;
    } catch (error) {
      setText(this.error, error.message);
    }
  }

  leave() {
    document.removeEventListener("keydown", this.#step);
    if (this.connection.isOpen) this.connection.send({ type: "stop" });
  }

  /** The site has other models now. */
  refresh() {
    const chosen = this.model.value;
    this.model.replaceChildren(...modelOptions(this.site));
    this.model.value = this.site.models.some((model) => model.name === chosen) ? chosen : this.site.default ?? "";
    this.#working(false);
  }

  /** The arrow keys, wherever they have no other meaning. */
  #step = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, [role=grid], .scroll")) return;
    const to = { ArrowLeft: this.#number - 1, ArrowRight: this.#number + 1, Home: 0, End: Infinity }[event.key];
    if (to === undefined || !this.#game) return;
    event.preventDefault();
    this.#goTo(to);
  };

  /** A game of the run, {path}, or one of the person's files, {file}. */
  async open({ path, file }) {
    setText(this.error, file && file.size > this.site.upload_bytes ? text.review.tooLarge(this.site.upload_bytes) : "");
    if (this.error.textContent) return;
    try {
      const game = await (file ? post("/api/games", file) : ask(`/api/games?path=${encodeURIComponent(path)}`));
      this.#game = { ...game, name: game.name || file.name };
    } catch (error) {
      setText(this.error, error.message);
      return;
    }
    this.#reports = null;
    this.board.setSize(this.#game.size);
    this.slider.max = this.#game.moves.length;
    this.announce(text.review.players(this.#game));
    this.#working(false);
    this.#goTo(0);
  }

  #shortcut(key) {
    if (key === "u" && this.#variation.length) this.#takeBack();
    else return false;
    return true;
  }

  #goTo(number) {
    if (!this.#game) return;
    this.#number = Math.min(Math.max(number, 0), this.#game.moves.length);
    this.#variation = [];
    this.#changed();
  }

  #try(move) {
    if (!this.#game) return;
    const next = this.#game.moves[this.#number];
    if (this.#variation.length === 0 && next && next[1] === move) { this.#goTo(this.#number + 1); return; }
    this.#variation.push(move);
    this.#changed();
  }

  #takeBack() {
    this.#variation.pop();
    this.#changed();
  }

  #changed() {
    this.#question += 1;
    this.#position = null;
    this.#thoughts = null;
    if (this.connection.isOpen) setText(this.error, ""); // the person goes on; no answer takes a complaint away
    this.#show();
    this.#look();
  }

  #look() {
    this.#looking ??= setTimeout(() => { this.#looking = null; this.#ask(); }, PATIENCE);
  }

  /** Ask the server for the position, and for thoughts if they are shown. */
  #ask() {
    if (!this.#game) return;
    const known = this.#variation.length === 0 && this.#reports;
    this.connection.send({ type: "look", game: this.#game.id, question: this.#question, move: this.#number,
      variation: this.#variation, readouts: this.thoughts.on && !known ? Number(this.readouts.value) : 0,
      ...(this.model.value ? { model: this.model.value } : {}) });
  }

  #showPosition(position) {
    if (position.question !== this.#question) return;
    this.#position = position;
    this.#variation = position.variation;
    if (position.refused) setText(this.error, position.refused);
    this.#show();
  }

  #showThoughts(thoughts) {
    if (!this.#position || thoughts.move_number !== this.#position.move_number) return;
    this.#thoughts = thoughts;
    this.#show();
  }

  #analyzeGame() {
    this.#working(true);
    setText(this.error, "");
    this.connection.send({ type: "analyze", game: this.#game.id, readouts: Number(this.readouts.value),
      ...(this.model.value ? { model: this.model.value } : {}) });
  }

  #working(on) {
    this.progress.classList.toggle("waiting", !on);
    this.progress.value = 0;
    this.analyze.disabled = on || !this.#game || !this.model.value;
  }

  #showProgress({ game, done, total }) {
    if (game === this.#game?.id) this.progress.value = done / Math.max(total, 1);
  }

  #showReport({ game, positions }) {
    if (game !== this.#game?.id) return;
    this.#reports = positions;
    this.#working(false);
    this.announce(text.review.analyzing(positions.length, positions.length));
    this.#show();
  }

  #show() {
    const game = this.#game;
    const position = this.#position;
    const size = game?.size ?? this.site.size;
    const tried = this.#variation.length;
    const stones = position?.stones ?? game?.positions[this.#number] ?? ".".repeat(size * size);
    const last = position ? position.last_move : game?.moves[this.#number - 1]?.[1] ?? null;
    this.board.show({ stones: tried && !position ? this.shown ?? stones : stones, lastMove: last,
      legal: position?.legal ?? null, playable: game && !position?.over ? this.#toPlay() : 0 });
    this.shown = stones;
    setText(this.title, game ? text.review.players(game) : text.review.noGame);
    setText(this.facts, game ? text.review.facts(game) : BLANK);
    this.slider.value = this.#number;
    for (const control of this.mover.children) control.disabled = !game;
    const where = tried ? text.review.variation(tried) : text.review.position(this.#number, game?.moves.length ?? 0);
    setText(this.where, game ? `${where}${tried ? "" : ` · ${text.review.try}`}` : BLANK);
    this.undo.disabled = this.back.disabled = !tried;
    this.#showOpinions(game, tried, size);
  }

  /** Who is to move, even before the server has said so: nobody has to wait for it with a click. */
  #toPlay() {
    if (this.#position) return this.#position.to_play;
    const { moves, first } = this.#game;
    const [last] = moves[this.#number - 1] ?? [3 - first];
    const [next] = moves[this.#number] ?? [3 - last];
    return this.#variation.length % 2 ? 3 - next : next;
  }

  #showOpinions(game, tried, size) {
    const report = tried ? null : this.#reports?.[this.#number];
    this.thoughts.show(report ? reportAsThoughts(report, this.#toPlay(), size) : this.#thoughts);
    const rates = this.#reports ? this.#reports.map((entry) => entry.black_win_rate) : [...(game?.win_rates ?? [])];
    if (!this.#reports && this.#thoughts && !tried) rates[this.#number] = this.#thoughts.black_win_rate;
    const wrong = (this.#reports ?? []).map((entry, k) => [entry.loss ?? 0, k]).filter(([loss]) => loss >= MISTAKE)
      .sort((a, b) => b[0] - a[0]);
    this.thoughts.curve.show(rates, this.#number, wrong.map(([, k]) => k + 1));
    if (this.listed !== this.#reports || this.listed === undefined) {
      this.listed = this.#reports;
      this.mistakes.replaceChildren(...(wrong.length
        ? wrong.map(([loss, k]) => this.#mistake(loss, k, size))
        : [h("li", { class: "quiet-text" }, this.#reports ? text.review.cleanGame : text.review.noMistakes)]));
    }
    const words = game?.comments[this.#number] ?? "";
    this.commentCard.hidden = !game?.comments.some(Boolean);
    setText(this.comment, words || BLANK);
  }

  #mistake(loss, k, size) {
    const [color, move] = this.#game.moves[k];
    const [best] = this.#reports[k].candidates;
    return h("li", null, h("button", { type: "button", onclick: () => this.#goTo(k) },
      h("span", null, text.review.mistake(k + 1, color, pointName(move, size), loss)),
      h("span", { class: "quiet-text" }, best ? text.review.better(pointName(best.move, size)) : "")));
  }
}

/** The analysis of a position in the shape of a search's thoughts. */
function reportAsThoughts(report, toPlay, size) {
  const visits = new Array(size * size + 1).fill(0);
  const policy = new Array(size * size + 1).fill(0);
  for (const candidate of report.candidates) {
    visits[candidate.move] = candidate.visits;
    policy[candidate.move] = candidate.prior;
  }
  const total = visits.reduce((sum, count) => sum + count, 0);
  return { ...report, visits, policy, to_play: toPlay, readouts: total, target: null };
}
