// One position before many networks: each generation's policy and value side by side, and two models compared.

import { post } from "./api.js";
import { Board } from "./board.js";
import { BLANK, field, h, setText } from "./dom.js";
import { text } from "./strings.js";

const SHOWN = 24; // generations at once; of more, evenly chosen ones

/** A small board with a network's opinion on it. */
class Judged {
  constructor(name, size, labels = 1) {
    this.name = name;
    this.labels = labels;
    this.board = new Board({ size, small: true, label: name });
    this.black = h("div");
    this.words = h("span", null, BLANK);
    this.title = h("strong", { title: name }, name);
    this.element = h("figure", { class: "judged" }, this.board.element,
      h("div", { class: "bar", "aria-hidden": "true" }, this.black), h("figcaption", null, this.title, this.words));
  }

  show(answer) {
    this.board.setSize(answer.size);
    this.board.show({ stones: answer.stones, lastMove: answer.last_move });
    this.board.heat(answer.policy, this.labels);
    this.black.style.width = `${100 * answer.black_win_rate}%`;
    setText(this.words, text.watch.black(answer.black_win_rate));
    this.board.describe(text.watch.judged(answer.model, answer.black_win_rate));
  }

  fail(message) { setText(this.words, message); }
}

export class Lab {
  #moves = [];
  #shown = []; // the moves that the board shows
  #models = [];
  #round = 0;
  #small = [];

  constructor(site) {
    this.sizes = Object.fromEntries(site.models.map((model) => [model.name, model.size]));
    this.size = this.sizes[site.default] ?? site.size;
    this.board = new Board({ size: this.size, label: text.watch.labBoard, onPlay: (move) => this.#set([...this.#moves, move]),
      onKey: (key) => key === "u" && this.#moves.length > 0 && (this.#set(this.#moves.slice(0, -1)), true) });
    this.board.show({ stones: ".".repeat(this.size ** 2), playable: 1 });
    this.error = h("p", { class: "error", role: "alert" });
    this.undo = h("button", { type: "button", onclick: () => this.#set(this.#moves.slice(0, -1)) }, text.review.undo);
    this.clear = h("button", { type: "button", onclick: () => this.#set([]) }, text.watch.clear);
    this.pair = [text.watch.modelA, text.watch.modelB].map((label) => {
      const judged = new Judged("", this.size, 4);
      const select = h("select", { onchange: () => this.#compare() });
      return { select, judged, element: h("div", { class: "lab-side" }, field(label, select), judged.element) };
    });
    this.strip = h("div", { class: "strip", tabindex: "0", role: "region", "aria-label": text.watch.lab });
    this.element = h("div", { class: "lab-all" },
      h("div", { class: "lab" },
        h("div", { class: "lab-side" }, this.board.element, h("div", { class: "buttons" }, this.undo, this.clear), this.error),
        this.strip),
      h("h3", null, text.watch.compare), h("div", { class: "pair" }, this.pair.map((side) => side.element)));
    this.#buttons();
  }

  /** The run's models; those that there were keep their boards. */
  setModels(names) {
    if (String(names) === String(this.#models)) return;
    const first = this.#models.length === 0;
    this.#models = names;
    const step = Math.max(1, (names.length - 1) / (SHOWN - 1));
    const shown = names.length <= SHOWN ? names
      : Array.from({ length: SHOWN }, (_, k) => names[Math.round(k * step)]);
    const kept = new Map(this.#small.map((judged) => [judged.name, judged]));
    this.#small = shown.map((name) => kept.get(name) ?? new Judged(name, this.size));
    this.strip.replaceChildren(...this.#small.map((judged) => judged.element));
    this.pair.forEach(({ select }, k) => {
      const before = select.value;
      select.replaceChildren(...names.map((name) => h("option", { value: name }, name)).reverse());
      select.value = names.includes(before) && !first ? before : names[k === 0 ? 0 : names.length - 1] ?? "";
    });
    this.#judgeAll();
  }

  #buttons() { this.undo.disabled = this.clear.disabled = this.#moves.length === 0; }

  #set(moves) {
    this.#moves = moves;
    this.#buttons();
    this.#judgeAll();
  }

  async #ask(model) {
    return post("/api/judge", JSON.stringify({ type: "judge", model, moves: this.#moves }));
  }

  /** Newest first, since that is what one looks at; the board itself shows the answer of the first asked. */
  async #judgeAll() {
    const round = ++this.#round;
    setText(this.error, "");
    if (!await this.#compare(round)) return;
    for (const judged of [...this.#small].reverse()) {
      if (round !== this.#round) return;
      try {
        const answer = await this.#ask(judged.name);
        if (round === this.#round) judged.show(answer);
      } catch (error) {
        judged.fail(error.message);
      }
    }
  }

  async #compare(round = this.#round) {
    for (const { select, judged } of this.pair) {
      if (!select.value) continue;
      try {
        const answer = await this.#ask(select.value);
        if (round !== this.#round) return false;
        judged.name = answer.model;
        setText(judged.title, answer.model);
        judged.show(answer);
        this.#shown = this.#moves;
        this.board.setSize(answer.size);
        this.board.show({ stones: answer.stones, lastMove: answer.last_move, playable: answer.to_play });
      } catch (error) {
        if (round !== this.#round) return false;
        setText(this.error, error.message);
        this.#moves = this.#shown; // an illegal move: as if it had not been tried
        this.#buttons();
        return false;
      }
    }
    return true;
  }
}
