// Watch: the state of a run, its curves, its gate, its latest games, and what its networks think of a position.

import { ask, Connection, stateWords } from "./api.js";
import { GenerationChart } from "./charts.js";
import { BLANK, h, setText, showList } from "./dom.js";
import { Lab } from "./lab.js";
import { text } from "./strings.js";

const version = (name) => Number.parseInt(name, 10);
const rounded = (digits) => (value) => value.toFixed(digits);

export class WatchPage {
  constructor(site, announce, { open }) {
    Object.assign(this, { site, announce, openPage: open });
    this.lab = new Lab(site);
    this.element = this.#build();
    this.connection = new Connection("/ws/watch", {
      onOpen: () => this.connection.send({ type: "hello" }),
      onState: (state) => {
        setText(this.error, stateWords(state));
        if (state === "idle") this.#wake();
      },
      handlers: {
        run: (message) => this.#showRun(message),
        generations: (message) => this.#showGenerations(message),
        error: (message) => setText(this.error, message.message),
      },
    });
  }

  enter() { this.connection.open(); }

  leave() { this.connection.close(); }

  refresh() { /* the run's models come by the connection */ }

  /** Nobody has to do anything here: the connection comes back as soon as somebody looks. */
  #wake() {
    if (!document.hidden) this.connection.open();
    else document.addEventListener("visibilitychange", () => { if (this.connection.wanted) this.connection.open(); }, { once: true });
  }

  #build() {
    this.error = h("p", { class: "error", role: "alert" });
    this.stage = h("h2", { class: "status" }, text.watch.loading);
    this.badge = h("span", { class: "badge", hidden: true });
    this.progress = h("progress", { max: 1, value: 0, "aria-label": text.watch.games });
    this.words = h("p", { class: "quiet-text" }, BLANK);
    this.facts = {};
    const facts = ["generation", "best", "games", "positions", "hours", "disk"].map((key) => {
      this.facts[key] = h("dd", { class: key === "best" ? "long" : null }, "–");
      return h("div", null, h("dt", null, text.watch[key]), this.facts[key]);
    });
    this.charts = {
      elo: new GenerationChart({ title: text.watch.elo, hint: text.watch.eloHint, format: rounded(0) }),
      loss: new GenerationChart({ title: text.watch.losses, hint: text.watch.lossHint }),
      length: new GenerationChart({ title: text.watch.length, hint: text.watch.lengthHint, format: rounded(0), zero: true }),
      entropy: new GenerationChart({ title: text.watch.entropy, hint: text.watch.entropyHint }),
      speed: new GenerationChart({ title: text.watch.throughput, hint: text.watch.throughputHint, zero: true }),
      winners: new GenerationChart({ title: text.watch.winners, hint: text.watch.winnersHint,
        format: (value) => `${Math.round(100 * value)} %` }),
    };
    this.gates = h("tbody");
    this.table = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": text.watch.table });
    this.games = h("ul", { class: "latest" });
    const card = (title, hint, ...content) => h("div", { class: "card" },
      h("h3", null, title), hint ? h("p", { class: "quiet-text" }, hint) : null, ...content);
    return h("div", { class: "watch" },
      h("section", { class: "card standing", "aria-label": text.watch.heading },
        h("div", { class: "stage" }, this.stage, this.badge), this.progress, this.words,
        h("dl", { class: "facts" }, facts), this.error),
      h("section", { class: "charts", "aria-label": text.watch.charts },
        Object.values(this.charts).map((chart) => h("div", { class: "card" }, chart.element))),
      h("div", { class: "halves" },
        card(text.watch.gates, null, h("div", { class: "scroll", tabindex: "0", role: "region",
          "aria-label": text.watch.gates }, h("table", null, h("thead", null, h("tr", null,
          [text.watch.gateModel, text.watch.gateScore, text.watch.gateVerdict].map((name) =>
            h("th", { scope: "col" }, name)))), this.gates))),
        card(text.watch.latest, text.watch.latestHint, this.games)),
      card(text.watch.lab, text.watch.labHint, this.lab.element),
      h("details", { class: "card" }, h("summary", null, text.watch.table), this.table));
  }

  #showRun(run) {
    setText(this.error, run.problem ?? "");
    if (run.problem) return;
    this.badge.hidden = Boolean(run.missing);
    this.lab.setModels(run.models);
    if (run.games !== this.counted) {
      this.counted = run.games;
      this.#loadGames();
    }
    if (run.missing) { this.#showNothing(run.missing); return; }
    setText(this.stage, text.watch.stages[run.stage]);
    setText(this.badge, run.running ? text.watch.running : text.watch.stopped);
    this.badge.classList.toggle("on", run.running);
    const perGeneration = run.games_per_generation;
    const done = Math.min(Math.max(run.games - (run.games_wanted - perGeneration), 0), perGeneration);
    this.progress.value = done / perGeneration;
    setText(this.words, text.watch.progress(done, perGeneration));
    const shown = {
      generation: String(run.generation), best: run.best ?? "–", games: run.games.toLocaleString("en"),
      positions: run.positions.toLocaleString("en"), hours: String(run.hours), disk: text.watch.megabytes(run.disk_mb),
    };
    for (const [key, words] of Object.entries(shown)) setText(this.facts[key], words);
  }

  #showNothing(words) {
    setText(this.stage, text.watch.heading);
    setText(this.words, words);
    this.progress.value = 0;
    for (const fact of Object.values(this.facts)) setText(fact, "–");
  }

  #showGenerations({ generations: rows, anchors, elo_source: source }) {
    const x = rows.map((row) => version(row.model));
    const column = (pick) => rows.map((row) => pick(row) ?? null);
    const one = (chart, name, pick, more = {}) =>
      this.charts[chart].show(x, [{ name, style: "first", values: column(pick), ...more }]);
    one("elo", text.watch.elo, (row) => row.elo,
      { low: column((row) => row.elo_low), high: column((row) => row.elo_high), anchors });
    this.charts.elo.setHint(text.watch.eloSources[source] + (source === "none" ? "" : `; ${text.watch.eloHint}`));
    const pair = (chart, first, second) => this.charts[chart].show(x, [
      { name: first[0], style: "first", values: column(first[1]) },
      { name: second[0], style: "second", values: column(second[1]) }]);
    pair("loss", [text.watch.policyLoss, (row) => row.validation?.policy_loss],
      [text.watch.valueLoss, (row) => row.validation?.value_loss]);
    pair("entropy", [text.watch.piEntropy, (row) => row.pi_entropy], [text.watch.pEntropy, (row) => row.p_entropy]);
    one("length", text.watch.length, (row) => row.length);
    one("speed", text.watch.throughput, (row) => row.moves_per_s || null);
    one("winners", text.watch.winners, (row) => row.black_wins);
    this.#showGates(rows.filter((row) => "promoted" in row).reverse());
    this.#showTable(rows);
  }

  #showGates(rows) {
    const score = (match) => match ? `${match.wins_a} : ${match.wins_b}` : text.watch.ungated;
    this.gates.replaceChildren(...(rows.length ? rows.map((row) => h("tr", null,
      h("th", { scope: "row" }, row.model), h("td", null, score(row.match)),
      h("td", { class: row.promoted ? "promoted" : null }, row.promoted ? text.watch.promoted : text.watch.refused)))
      : [h("tr", null, h("td", { colspan: 3 }, text.watch.noGates))]));
  }

  #showTable(rows) {
    const columns = {
      [text.watch.generation]: (row) => row.model, [text.watch.elo]: (row) => row.elo,
      [`${text.watch.losses}: ${text.watch.policyLoss}`]: (row) => row.validation?.policy_loss,
      [`${text.watch.losses}: ${text.watch.valueLoss}`]: (row) => row.validation?.value_loss,
      [text.watch.length]: (row) => row.length, [text.watch.piEntropy]: (row) => row.pi_entropy,
      [text.watch.pEntropy]: (row) => row.p_entropy, [text.watch.winners]: (row) => row.black_wins,
      [text.watch.throughput]: (row) => row.moves_per_s,
    };
    this.table.replaceChildren(h("table", null,
      h("thead", null, h("tr", null, Object.keys(columns).map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null, rows.map((row) => h("tr", null, Object.values(columns).map((pick, k) =>
        h(k ? "td" : "th", k ? null : { scope: "row" }, String(pick(row) ?? "–"))))))));
  }

  async #loadGames() {
    let games;
    try {
      ({ games } = await ask("/api/games"));
    } catch (error) {
      setText(this.error, error.message);
      return;
    }
    showList(this.games, games.length ? games : [null], (game) => game?.path ?? "", (game) => h("li", null, game
      ? h("button", { type: "button", title: game.path, onclick: () => this.openPage("review", { path: game.path }) },
        h("span", null, text.watch.game(game)), h("span", null, game.result), h("span", null, text.watch.moves(game.moves)))
      : h("span", { class: "quiet-text" }, text.watch.noGames)));
  }
}
