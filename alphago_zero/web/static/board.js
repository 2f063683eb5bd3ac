// The board: SVG for the eyes, and over it a grid of cells for mouse, touch, keyboard and screen readers.

import { h, newId, setText, svg } from "./dom.js";
import { columnName, pointName, text } from "./strings.js";

const CELL = 40;
const STARS = { 7: [3], 9: [2, 4, 6], 11: [2, 5, 8], 13: [3, 6, 9], 15: [3, 7, 11], 17: [3, 8, 13], 19: [3, 9, 15] };

/** Gradients that all boards of the page share; once in the document. */
export function boardDefinitions() {
  const stops = (name, count) => Array.from({ length: count }, (_, k) =>
    svg("stop", { offset: String(k / (count - 1)), class: `${name}-${k + 1}` }));
  return svg("svg", { class: "definitions", width: 0, height: 0, "aria-hidden": "true", focusable: "false" },
    svg("defs", null,
      svg("linearGradient", { id: "wood", x1: 0, y1: 0, x2: 0.25, y2: 1 }, stops("wood", 3)),
      svg("linearGradient", { id: "grain", gradientUnits: "userSpaceOnUse", x1: 0, y1: 0, x2: 23, y2: 1.6,
        spreadMethod: "repeat" }, stops("grain", 6)),
      svg("radialGradient", { id: "stone-black", cx: 0.36, cy: 0.3, r: 0.75 }, stops("black", 3)),
      svg("radialGradient", { id: "stone-white", cx: 0.36, cy: 0.3, r: 0.8 }, stops("white", 3))));
}

export class Board {
  #cells = [];
  #layers = {};
  #cursor = 0;
  #stones = "";
  #hover = null;

  /** `onPlay(point)`, `onKey(key)` for letters, `small`: a picture only, without coordinates and cells. */
  constructor({ size, label, onPlay = null, onKey = null, small = false }) {
    Object.assign(this, { label, onPlay, onKey, small });
    this.element = h("div", { class: small ? "board small" : "board" });
    this.setSize(size);
  }

  setSize(size) {
    if (size === this.size) return;
    this.size = size;
    this.margin = CELL * (this.small ? 0.6 : 1.1); // room for a stone on the edge, and for the names
    this.extent = 2 * this.margin + (size - 1) * CELL;
    this.#stones = "";
    this.legal = null;
    this.element.replaceChildren(this.#draw(), ...(this.small ? [] : [this.#grid()]));
    this.#cursor = Math.floor(size * size / 2);
    this.show({ stones: ".".repeat(size * size) });
  }

  #x(point) { return this.margin + (point % this.size) * CELL; }
  #y(point) { return this.margin + Math.floor(point / this.size) * CELL; }

  #draw() {
    const { size, margin, extent } = this;
    const far = extent - margin;
    let lines = "";
    for (let k = 0; k < size; k += 1) {
      const at = margin + k * CELL;
      lines += `M${margin} ${at}H${far}M${at} ${margin}V${far}`;
    }
    const stars = [];
    const places = STARS[size] ?? (size % 2 ? [(size - 1) / 2] : []);
    for (const row of places) {
      for (const column of places) {
        const middle = (size - 1) / 2;
        if (size < 13 && places.length === 3 && (row === middle) !== (column === middle)) continue;
        stars.push(svg("circle", { cx: margin + column * CELL, cy: margin + row * CELL, r: 3.6 }));
      }
    }
    const names = [];
    if (!this.small) {
      for (let k = 0; k < size; k += 1) {
        const at = margin + k * CELL;
        const label = (x, y, name) => names.push(svg("text", { x, y }, name));
        label(at, margin * 0.3, columnName(k));
        label(at, extent - margin * 0.3, columnName(k));
        label(margin * 0.3, at, String(size - k));
        label(extent - margin * 0.3, at, String(size - k));
      }
    }
    this.#layers = Object.fromEntries(["owners", "shadows", "stones", "heat", "marks", "line", "ghost"]
      .map((name) => [name, svg("g", { class: `layer-${name}` })]));
    const picture = svg("svg", { viewBox: `0 0 ${extent} ${extent}`, focusable: "false",
      ...(this.small ? { role: "img", "aria-label": this.label || text.board.label(size) } : { "aria-hidden": "true" }) },
    svg("rect", { width: extent, height: extent, rx: 6, fill: "url(#wood)" }),
    svg("rect", { width: extent, height: extent, rx: 6, fill: "url(#grain)" }),
    svg("path", { d: lines, class: "lines" }),
    svg("g", { class: "stars" }, stars),
    svg("g", { class: "names" }, names),
    Object.values(this.#layers));
    this.picture = picture;
    return picture;
  }

  #grid() {
    const { size, margin, extent } = this;
    const rows = [];
    this.#cells = [];
    for (let row = 0; row < size; row += 1) {
      const cells = [];
      for (let column = 0; column < size; column += 1) {
        const cell = h("div", { role: "gridcell", tabindex: "-1", class: "cell" });
        cell.dataset.point = row * size + column;
        this.#cells.push(cell);
        cells.push(cell);
      }
      rows.push(h("div", { role: "row", class: "row" }, cells));
    }
    const help = h("p", { class: "visually-hidden", id: newId("help") }, text.board.help);
    const grid = h("div", { role: "grid", class: "cells", "aria-label": this.label ?? text.board.label(size),
      "aria-describedby": help.id,
      onclick: (event) => this.#at(event, (point) => {
        this.#move(point, false);
        if (event.detail < 2) this.#play(point); // a double click puts down one stone
      }),
      onkeydown: (event) => this.#key(event),
      onmouseover: (event) => this.#at(event, (point) => this.#point(point)),
      onmouseleave: () => this.#point(null),
      onfocusin: (event) => this.#at(event, (point) => this.#move(point, false)),
    }, rows);
    const inset = `${100 * (margin - CELL / 2) / extent}%`;
    Object.assign(grid.style, { inset });
    return h("div", { class: "overlay" }, grid, help);
  }

  #at(event, action) {
    const cell = event.target.closest(".cell");
    if (cell) action(Number(cell.dataset.point));
  }

  #move(point, focus = true) {
    this.#cells[this.#cursor]?.setAttribute("tabindex", "-1");
    this.#cursor = point;
    this.#cells[point]?.setAttribute("tabindex", "0");
    if (focus) this.#cells[point].focus();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { size } = this;
    const row = Math.floor(this.#cursor / size);
    const column = this.#cursor % size;
    const to = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1], Home: [row, 0], End: [row, size - 1], PageUp: [0, column],
      PageDown: [size - 1, column],
    }[event.key];
    if (to) {
      const [r, c] = to.map((k) => Math.min(Math.max(k, 0), size - 1));
      this.#move(r * size + c);
    } else if (event.key === "Enter" || event.key === " ") {
      this.#play(this.#cursor);
    } else if (!this.onKey?.(event.key.toLowerCase())) {
      return;
    }
    event.preventDefault();
  }

  #play(point) {
    if (this.playable && this.onPlay) this.onPlay(point);
  }

  /** The stone that a click would put down. */
  #point(point) {
    this.#hover = point;
    const ghost = this.#layers.ghost;
    ghost.replaceChildren();
    if (point === null || !this.playable || this.#stones[point] !== "." || this.legal?.[point] === "0") return;
    ghost.append(this.#stone(point, this.playable));
  }

  #stone(point, color) {
    return svg("circle", { cx: this.#x(point), cy: this.#y(point), r: CELL * 0.475,
      fill: color === 1 ? "url(#stone-black)" : "url(#stone-white)", class: color === 1 ? "black" : "white" });
  }

  /** A position. `playable`: the colour that the person may put down now, or 0. */
  show({ stones, lastMove = null, playable = 0, legal = null, dead = [] }) {
    this.playable = playable;
    this.legal = legal;
    const same = stones === this.#stones && lastMove === this.lastMove && String(dead) === String(this.dead ?? []);
    this.element.classList.toggle("playable", Boolean(playable));
    if (!same) {
      Object.assign(this, { lastMove, dead });
      this.#stones = stones;
      this.#drawStones(new Set(dead));
    }
    if (this.#hover !== null) this.#point(this.#hover);
  }

  #drawStones(dead) {
    const drawn = [];
    const shadows = [];
    [...this.#stones].forEach((letter, point) => {
      const cell = this.#cells[point];
      if (cell) {
        const parts = [pointName(point, this.size), text.board.stone[letter] ?? text.board.empty];
        if (point === this.lastMove) parts.push(text.board.last);
        if (dead.has(point)) parts.push(text.board.dead);
        cell.setAttribute("aria-label", parts.join(", "));
        cell.setAttribute("tabindex", point === this.#cursor ? "0" : "-1");
      }
      if (letter === ".") return;
      const stone = this.#stone(point, letter === "X" ? 1 : 2);
      if (dead.has(point)) stone.classList.add("dead");
      else shadows.push(svg("circle", { cx: this.#x(point) + 1.2, cy: this.#y(point) + 2.2, r: CELL * 0.475 }));
      drawn.push(stone);
    });
    this.#layers.shadows.replaceChildren(...shadows);
    this.#layers.stones.replaceChildren(...drawn);
    const marks = [];
    const last = this.lastMove;
    if (last !== null && last < this.#stones.length && this.#stones[last] !== ".") {
      marks.push(svg("circle", { cx: this.#x(last), cy: this.#y(last), r: CELL * 0.2,
        class: this.#stones[last] === "X" ? "last on-black" : "last on-white" }));
    }
    for (const point of dead) {
      const [x, y, d] = [this.#x(point), this.#y(point), CELL * 0.17];
      marks.push(svg("path", { d: `M${x - d} ${y - d}L${x + d} ${y + d}M${x + d} ${y - d}L${x - d} ${y + d}`,
        class: this.#stones[point] === "X" ? "cross on-black" : "cross on-white" }));
    }
    this.#layers.marks.replaceChildren(...marks);
  }

  /** A share for every point (0 to 1), as warmth; the strongest ones get a label. Null: none. */
  heat(shares, labels = 5) {
    if (!shares) { this.#layers.heat.replaceChildren(); return; }
    const points = shares.slice(0, this.size * this.size);
    const most = Math.max(...points, 0.08); // what is spread evenly looks faint
    const named = new Set(points.map((share, point) => [share, point]).sort((a, b) => b[0] - a[0])
      .slice(0, labels).filter(([share]) => share >= 0.02).map(([, point]) => point));
    const drawn = [];
    points.forEach((share, point) => {
      if (share < 0.006 || this.#stones[point] !== ".") return;
      const weight = Math.sqrt(share / most);
      const place = { cx: this.#x(point), cy: this.#y(point) };
      const spot = svg("circle", { ...place, r: CELL * (0.1 + 0.34 * weight), class: "spot" });
      spot.style.opacity = (0.3 + 0.6 * weight).toFixed(3);
      drawn.push(spot);
      if (named.has(point)) {
        drawn.push(svg("text", { x: place.cx, y: place.cy, class: "share" }, String(Math.round(100 * share))));
      }
    });
    this.#layers.heat.replaceChildren(...drawn);
  }

  /** Whose each point is: a letter a point, or null. */
  owners(letters) {
    if (!letters) { this.#layers.owners.replaceChildren(); return; }
    const drawn = [];
    [...letters].forEach((letter, point) => {
      if (letter === ".") return;
      const side = CELL * 0.34;
      drawn.push(svg("rect", { x: this.#x(point) - side / 2, y: this.#y(point) - side / 2, width: side, height: side,
        rx: 2, class: letter === "X" ? "black" : "white" }));
    });
    this.#layers.owners.replaceChildren(...drawn);
  }

  /** A line of play as numbered stones, the first of `color`; null: none. */
  line(moves, color = 1) {
    this.element.classList.toggle("shows-line", Boolean(moves));
    if (!moves) { this.#layers.line.replaceChildren(); return; }
    const drawn = [];
    const seen = new Set();
    moves.forEach((move, k) => {
      const mover = k % 2 === 0 ? color : 3 - color;
      if (move >= this.size * this.size || seen.has(move)) return;
      seen.add(move);
      drawn.push(this.#stone(move, mover), svg("text", { x: this.#x(move), y: this.#y(move),
        class: mover === 1 ? "number on-black" : "number on-white" }, String(k + 1)));
    });
    this.#layers.line.replaceChildren(...drawn);
  }

  describe(label) {
    if (this.small) this.picture.setAttribute("aria-label", label);
  }
}

/** The bar that says who is ahead. */
export class WinBar {
  constructor() {
    this.black = h("div", { class: "share-black" });
    this.words = h("span", { class: "share-words" }, text.thoughts.noBar);
    this.element = h("div", { class: "win-bar" },
      h("div", { class: "bar", "aria-hidden": "true" }, this.black), this.words);
  }

  show(share) {
    this.element.classList.toggle("unknown", share === null);
    this.black.style.width = `${100 * (share ?? 0.5)}%`;
    setText(this.words, share === null ? text.thoughts.noBar : text.thoughts.bar(share));
  }
}
