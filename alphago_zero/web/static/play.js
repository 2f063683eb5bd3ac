// Play: a game against a model.

import { Connection, stateWords } from "./api.js";
import { Board } from "./board.js";
import { BLANK, field, h, keep, modelOptions, recall, segments, setText } from "./dom.js";
import { pointName, text } from "./strings.js";
import { Thoughts } from "./thoughts.js";

const KEPT = "play"; // {choice: what the form says, game: how the present game began and its moves, view}
const READOUTS = [1, 25, 100, 200, 400, 800, 1600, 3200];

export class PlayPage {
  #position = null;
  #score = null;
  #asked = null; // the game that was asked for and has not begun
  #game;

  constructor(site, announce) {
    this.site = site;
    this.announce = announce;
    this.choice = { ...this.#defaults(), ...recall(KEPT)?.choice };
    if (!site.models.some((model) => model.name === this.choice.model)) this.choice.model = site.default;
    this.#game = recall(KEPT)?.game ?? null;
    this.board = new Board({ size: this.#model()?.size ?? site.size, onPlay: (move) => this.#play(move),
      onKey: (key) => this.#shortcut(key) });
    this.thoughts = new Thoughts({ board: this.board, view: recall(KEPT)?.view ?? "off",
      views: ["off", "visits", "policy"], onView: () => this.#think(), onMove: null, onTry: (move) => this.#play(move) });
    this.connection = new Connection("/ws/play", {
      onOpen: () => this.#start(this.#asked ?? this.#game ?? { ...this.choice, moves: [] }),
      onState: (state) => setText(this.error, stateWords(state)),
      handlers: {
        position: (message) => this.#showPosition(message),
        thoughts: (message) => this.#showThoughts(message),
        score: (message) => this.#showScore(message),
        sgf: (message) => this.#save(message.text),
        error: (message) => this.#complain(message.message),
      },
    });
    this.element = this.#build();
  }

  #defaults() {
    return { color: "black", model: this.site.default, readouts: this.site.readouts.default, komi: null, handicap: 0 };
  }

  #model() { return this.site.models.find((model) => model.name === this.choice.model); }

  #build() {
    this.title = h("h2", { class: "status" }, text.play.loading);
    this.detail = h("p", { class: "quiet-text detail" }, BLANK);
    this.error = h("p", { class: "error", role: "alert" });
    this.players = [1, 2].map((color) => {
      const name = h("span", { class: "name" }, text.color(color));
      const captured = h("span", { class: "quiet-text" }, text.play.captured(0));
      return { name, captured, element: h("li", null, h("span", { class: `disc color-${color}`, "aria-hidden": "true" }),
        h("span", { class: "player" }, name, captured)) };
    });
    const button = (label, type, action) => h("button", { type: "button", onclick: action ?? (() => this.#send({ type })) },
      label);
    this.buttons = {
      pass: button(text.play.pass, null, () => this.#play(this.board.size ** 2)),
      undo: button(text.play.undo, "undo"),
      resign: button(text.play.resign, "resign"),
      count: button(text.play.count, null, () => { setText(this.title, text.play.counting); this.#send({ type: "score" }); }),
      save: button(text.play.save, "sgf"),
    };
    for (const each of Object.values(this.buttons)) each.disabled = true; // until there is a game
    return h("div", { class: "table" },
      h("div", { class: "board-side" }, this.board.element),
      h("div", { class: "panel" },
        h("section", { class: "card state", "aria-label": text.play.heading },
          this.title, this.detail,
          h("ul", { class: "players" }, this.players.map((player) => player.element)),
          h("div", { class: "buttons" }, Object.values(this.buttons)), this.error),
        this.thoughts.element,
        this.#form()));
  }

  #form() {
    const { site, choice } = this;
    const model = h("select", { onchange: () => { choice.model = model.value; choice.komi = null; fit(); } });
    const readouts = h("select", { onchange: () => { choice.readouts = Number(readouts.value); } },
      READOUTS.filter((count) => count <= site.readouts.most).map((count) => h("option", { value: count },
        count.toLocaleString("en"))));
    const komi = h("input", { type: "number", step: "0.5", min: "-100", max: "100", inputmode: "decimal",
      onchange: () => { choice.komi = komi.value === "" ? null : Number(komi.value); } });
    const handicap = h("select", { onchange: () => { choice.handicap = Number(handicap.value); } });
    const hint = h("p", { class: "quiet-text" });
    const fit = () => {
      const chosen = this.#model();
      start.disabled = !chosen;
      if (!chosen) return;
      const most = site.handicaps[chosen.size] ?? 0;
      handicap.replaceChildren(h("option", { value: 0 }, text.play.noHandicap),
        ...Array.from({ length: Math.max(most - 1, 0) }, (_, k) => h("option", { value: k + 2 }, text.play.stones(k + 2))));
      choice.handicap = Math.min(choice.handicap, most);
      handicap.value = choice.handicap;
      komi.value = choice.komi ?? chosen.komi;
      setText(hint, text.play.komiHint(chosen.komi));
    };
    if (!READOUTS.includes(choice.readouts)) choice.readouts = 100;
    readouts.value = choice.readouts;
    const start = h("button", { type: "submit", class: "primary" }, text.play.start);
    this.showModels = () => {
      if (!this.#model()) choice.model = site.default;
      model.replaceChildren(...modelOptions(site));
      model.value = choice.model ?? "";
      fit();
    };
    this.showModels();
    const begin = () => this.#start({ ...choice, moves: [] });
    return h("form", { class: "card new-game", onsubmit: (event) => { event.preventDefault(); begin(); } },
      h("h3", null, text.play.newGame),
      h("div", { class: "field" }, h("span", { class: "label" }, text.play.color),
        segments(text.play.color, Object.entries(text.play.colors), choice.color, (color) => { choice.color = color; })),
      field(text.play.model, model),
      h("div", { class: "fields" }, field(text.play.readouts, readouts), field(text.play.komi, komi),
        field(text.play.handicap, handicap)),
      hint, start);
  }

  enter() { this.connection.open(); }

  /** The site has other models now. A page that waited for the first one begins. */
  refresh() {
    this.showModels();
    if (!this.#position && this.choice.model) this.#start({ ...this.choice, moves: [] });
  }

  leave() { /* the game stays at its board, and the engine may go on thinking about its move */ }

  #keep() { keep(KEPT, { choice: this.choice, game: this.#game, view: this.thoughts.view }); }

  #send(message) {
    setText(this.error, "");
    this.connection.send(message);
  }

  /** Begin a game, or go on with one: {color, model, readouts, komi, handicap, moves, resigned}. */
  #start(game) {
    const { color, model, readouts, komi, handicap, moves } = game;
    this.#asked = game;
    this.#send({ type: "new", color, readouts, handicap, moves, think: this.thoughts.on,
      ...(model ? { model } : {}), ...(komi === null ? {} : { komi }) });
    if (game.resigned) this.#send({ type: "resign" });
  }

  #play(move) {
    const position = this.#position;
    if (!position?.persons_turn || position.over || position.result) return;
    this.#send({ type: "play", move });
  }

  #shortcut(key) {
    if (key === "p") this.#play(this.board.size ** 2);
    else if (key === "u") this.#send({ type: "undo" });
    else return false;
    return true;
  }

  #think() {
    this.#keep();
    this.#send({ type: "think", on: this.thoughts.on });
  }

  #showPosition(position) {
    const before = this.#position;
    this.#position = position;
    this.#score = null;
    const loser = position.over ? undefined : { B: 2, W: 1 }[position.result?.[0]];
    this.#game = { ...(this.#asked ?? this.#game), moves: position.moves,
      resigned: loser !== undefined && [0, loser].includes(position.person) };
    this.#asked = null;
    this.#keep();
    this.board.setSize(position.size);
    this.board.owners(null);
    const ended = position.over || position.result;
    this.board.show({ stones: position.stones, lastMove: position.last_move, legal: position.legal,
      playable: position.persons_turn && !ended ? position.to_play : 0 });
    this.thoughts.show(null);
    this.thoughts.curve.show(position.win_rates, position.move_number);
    this.#showState();
    const last = position.moves.length - 1;
    if (before && last >= 0 && position.moves.length > before.moves.length) {
      const name = pointName(position.last_move, position.size);
      this.announce(`${text.play.played(this.#moverOf(last), name)} ${this.title.textContent}`);
    }
  }

  #moverOf(index) { return index % 2 === 0 ? this.#position.first : 3 - this.#position.first; }

  #showState() {
    const position = this.#position;
    const { person } = position;
    const ended = position.result ?? (this.#score?.final ? this.#score.result : null);
    if (ended) setText(this.title, text.play.wonBy(ended));
    else if (position.over) setText(this.title, text.play.counting);
    else if (this.#score) setText(this.title, text.play.estimate(this.#score.result));
    else if (!position.persons_turn) setText(this.title, text.play.thinking);
    else setText(this.title, person ? text.play.yourTurn : text.play.turnOf(position.to_play));
    const engine = text.play.against(position.model, position.readouts);
    const dead = this.#score?.dead.length ? ` · ${text.play.dead(this.#score.dead.length)}` : "";
    const last = position.moves.length - 1;
    const passed = last >= 0 && position.last_move === position.size ** 2
      ? ` · ${text.play.passed(this.#moverOf(last))}` : "";
    setText(this.detail, `${text.play.moveNumber(position.move_number)}${passed} · ${person ? engine : text.play.youAreBoth}${dead}`);
    this.players.forEach(({ name, captured, element }, k) => {
      const color = k + 1;
      const who = person === 0 ? text.color(color) : color === person ? text.play.you : position.model;
      setText(name, who);
      setText(captured, text.play.captured(position.captures[k]));
      element.classList.toggle("to-play", !ended && !position.over && position.to_play === color);
    });
    const closed = Boolean(ended) || position.over;
    this.buttons.pass.disabled = closed || !position.persons_turn;
    this.buttons.resign.disabled = closed;
    this.buttons.undo.disabled = position.moves.length === 0 && !ended;
    this.buttons.count.disabled = closed;
    this.buttons.save.disabled = false;
  }

  #showThoughts(thoughts) {
    if (!this.#position || thoughts.move_number !== this.#position.move_number) return;
    if (!this.#score) this.thoughts.show(thoughts); // no heat upon the territory
    const rates = [...this.#position.win_rates];
    rates[thoughts.move_number] = thoughts.black_win_rate;
    this.thoughts.curve.show(rates, thoughts.move_number);
  }

  #showScore(score) {
    if (!this.#position || score.move_number !== this.#position.move_number) return;
    this.#score = score;
    this.board.show({ stones: this.#position.stones, lastMove: this.#position.last_move, legal: this.#position.legal,
      playable: score.final ? 0 : this.board.playable, dead: score.dead });
    this.thoughts.show(null);
    this.board.owners(score.owners);
    this.#showState();
    this.announce(this.title.textContent);
  }

  #save(content) {
    const url = URL.createObjectURL(new Blob([content], { type: "application/x-go-sgf" }));
    h("a", { href: url, download: text.play.fileName }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  #complain(message) {
    this.#asked = null;
    setText(this.error, message);
    if (!this.#position) setText(this.title, text.play.heading);
    else this.#showState();
  }
}
