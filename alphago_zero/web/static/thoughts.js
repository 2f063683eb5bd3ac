// The engine's thoughts, as play and review show them: bar, heat on the board, table of candidates, line on hover.

import { WinBar } from "./board.js";
import { WinCurve } from "./charts.js";
import { h, segments, setText } from "./dom.js";
import { pointName, text } from "./strings.js";

const ROWS = 8;

export class Thoughts {
  #thoughts = null;
  #rows = [];

  /** `board`: where heat and lines are drawn; `onView(view)`: the person chose what to see; `onMove(number)`: a click
   * on the curve; `onTry(move)`: a click on a candidate. */
  constructor({ board, view, views, onView, onMove, onTry = null }) {
    Object.assign(this, { board, view, onTry });
    this.bar = new WinBar();
    this.curve = new WinCurve({ label: text.thoughts.curve, onMove });
    this.progress = h("p", { class: "quiet-text progress-words" }, text.thoughts.nothing);
    this.body = h("tbody");
    for (let k = 0; k < ROWS; k += 1) this.#rows.push(this.#row(k));
    this.body.append(...this.#rows.map((row) => row.element));
    const head = h("tr", null, [text.thoughts.move, text.thoughts.chance, text.thoughts.visits, text.thoughts.policy]
      .map((name) => h("th", { scope: "col" }, name)));
    this.details = h("div", { class: "thoughts-details" },
      this.bar.element, this.curve.element,
      h("table", { class: "candidates" }, h("caption", null, text.thoughts.best), h("thead", null, head), this.body),
      this.progress, h("p", { class: "quiet-text" }, text.thoughts.hint));
    this.element = h("section", { class: "card thoughts", "aria-label": text.thoughts.heading },
      h("h3", null, text.thoughts.heading),
      segments(text.thoughts.show, views.map((name) => [name, text.thoughts.views[name]]), view, (chosen) => {
        this.setView(chosen);
        onView(chosen);
      }),
      this.details);
    this.setView(view);
  }

  get on() { return this.view !== "off"; }

  setView(view) {
    this.view = view;
    this.details.hidden = !this.on;
    this.#paint();
    if (this.on) this.curve.redraw();
  }

  #row(k) {
    const show = () => this.#line(k);
    const hide = () => this.#line(null);
    const button = h("button", { type: "button", class: "move", onfocus: show, onblur: hide,
      onclick: () => { const move = this.#thoughts?.candidates[k]?.move; if (move !== undefined) this.onTry?.(move); } });
    const cells = [h("th", { scope: "row" }, button), h("td"), h("td"), h("td")];
    const element = h("tr", { onmouseenter: show, onmouseleave: hide }, cells);
    return { element, button, cells };
  }

  #line(k) {
    const candidate = k === null ? null : this.#thoughts?.candidates[k];
    this.board.line(candidate ? candidate.line : null, this.#thoughts?.to_play);
  }

  /** New thoughts about the position on the board; null: none (another position). */
  show(thoughts) {
    this.#thoughts = thoughts;
    if (!thoughts) this.board.line(null);
    this.#paint();
  }

  #paint() {
    const thoughts = this.#thoughts;
    if (!this.on || !thoughts) {
      this.board.heat(null);
    } else if (this.view === "policy") {
      this.board.heat(thoughts.policy);
    } else {
      const total = Math.max(thoughts.visits.reduce((sum, n) => sum + n, 0), 1);
      this.board.heat(thoughts.visits.map((n) => n / total));
    }
    if (!this.on) return;
    this.bar.show(thoughts ? thoughts.black_win_rate : null);
    let words = text.thoughts.nothing;
    if (thoughts) words = thoughts.target === null ? text.thoughts.analyzed : text.thoughts.progress(thoughts.readouts, thoughts.target);
    setText(this.progress, words);
    this.#rows.forEach(({ element, button, cells }, k) => {
      const candidate = thoughts?.candidates[k];
      element.classList.toggle("blank", !candidate);
      button.disabled = !candidate;
      setText(button, candidate ? pointName(candidate.move, this.board.size) : "–");
      const shown = candidate
        ? [text.percent(candidate.win_rate), candidate.visits.toLocaleString("en"), text.percent(candidate.prior)]
        : ["", "", ""];
      shown.forEach((words, column) => setText(cells[column + 1], words));
    });
  }
}
