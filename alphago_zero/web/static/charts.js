// Curves, drawn with D3 as SVG, so that the style sheet colours them and they are crisp everywhere.

/* global d3 */
import { h, setText } from "./dom.js";
import { text } from "./strings.js";

const MARGIN = { top: 8, right: 10, bottom: 24, left: 40 };

/** A chart in a box of fixed height; it draws itself anew when its width changes. Its units grow with the page's text. */
class Chart {
  constructor({ height, label }) {
    Object.assign(this, { height, label });
    this.box = h("div", { class: "chart-box" });
    this.box.style.height = `${height / 16}rem`;
    this.root = d3.select(this.box).append("svg").attr({ role: "img", "aria-label": label });
    this.drawing = this.root.append("g");
    this.element = h("figure", { class: "chart" }, this.box);
    this.width = 0;
    new ResizeObserver(() => this.redraw()).observe(this.box);
  }

  redraw() {
    const unit = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    const width = Math.floor(this.box.clientWidth / unit);
    if (width < 60) return;
    Object.assign(this, { width, unit });
    this.root.attr({ width: width * unit, height: this.height * unit, viewBox: `0 0 ${width} ${this.height}` });
    this.drawing.selectAll("*").remove();
    this.draw(this.drawing, width, this.height);
  }

  axes(root, x, y, { xTicks = 6, yTicks = 4, yFormat = null, xFormat = d3.format("d") } = {}) {
    const [bottom, left] = [this.height - MARGIN.bottom, MARGIN.left];
    const yAxis = d3.svg.axis().scale(y).orient("left").ticks(yTicks).tickSize(-(this.width - left - MARGIN.right), 0);
    if (yFormat) yAxis.tickFormat(yFormat);
    root.append("g").attr({ class: "axis y", transform: `translate(${left},0)` }).call(yAxis);
    root.append("g").attr({ class: "axis x", transform: `translate(0,${bottom})` })
      .call(d3.svg.axis().scale(x).orient("bottom").ticks(xTicks).tickFormat(xFormat).tickSize(0, 0).tickPadding(8));
  }
}

/** Black's chance to win over the moves of a game; a click chooses a move. */
export class WinCurve extends Chart {
  #rates = [];
  #current = 0;
  #mistakes = [];

  constructor({ label, onMove = null, height = 132 }) {
    super({ height, label });
    if (!onMove) return;
    this.element.classList.add("clickable");
    // It stays while the curve is drawn anew: what goes between press and release takes the click with it.
    this.catcher = this.root.append("rect").attr({ class: "catcher", x: MARGIN.left, y: 0, height: height - MARGIN.bottom })
      .on("click", () => {
        const move = Math.round(this.scale.invert(d3.mouse(this.catcher.node())[0]));
        onMove(Math.min(Math.max(move, 0), Math.max(this.#rates.length - 1, 0)));
      });
  }

  show(rates, current, mistakes = []) {
    const same = JSON.stringify([rates, mistakes]) === JSON.stringify([this.#rates, this.#mistakes]);
    if (same && current === this.#current) return;
    this.#rates = rates;
    this.#current = current;
    this.#mistakes = mistakes;
    this.redraw();
  }

  draw(root, width, height) {
    const last = Math.max(this.#rates.length - 1, 10);
    const x = d3.scale.linear().domain([0, last]).range([MARGIN.left, width - MARGIN.right]);
    const y = d3.scale.linear().domain([0, 1]).range([height - MARGIN.bottom, MARGIN.top]);
    this.axes(root, x, y, { xTicks: Math.min(6, last), yTicks: 2, yFormat: (v) => `${100 * v} %` });
    const points = this.#rates.map((rate, k) => [k, rate]).filter(([, rate]) => rate !== null && rate !== undefined);
    const area = d3.svg.area().x((p) => x(p[0])).y0(y(0)).y1((p) => y(p[1]));
    const line = d3.svg.line().x((p) => x(p[0])).y((p) => y(p[1]));
    root.append("path").attr({ class: "area", d: points.length > 1 ? area(points) : null });
    root.append("path").attr({ class: "curve", d: points.length > 1 ? line(points) : null });
    if (points.length === 1) root.append("circle").attr({ class: "dot", r: 3, cx: x(points[0][0]), cy: y(points[0][1]) });
    root.selectAll("circle.mistake").data(this.#mistakes.filter((k) => (this.#rates[k] ?? null) !== null)).enter()
      .append("circle").attr({ class: "mistake", r: 3.5, cx: (k) => x(k), cy: (k) => y(this.#rates[k]) });
    root.append("line").attr({ class: "cursor", x1: x(this.#current), x2: x(this.#current), y1: y(0), y2: y(1) });
    this.scale = x;
    this.catcher?.attr({ width: x(last) - x(0) });
  }
}

/** Figures of the generations. A series: {name, values, low, high, style}. */
export class GenerationChart extends Chart {
  #x = [];
  #series = [];

  constructor({ title, hint, height = 190, format = null, zero = false }) {
    super({ height, label: `${title}, ${hint}` });
    Object.assign(this, { title, format, zero });
    this.legend = h("div", { class: "legend" });
    this.reading = h("span", { class: "reading" });
    this.hint = h("span", { class: "quiet-text" }, hint);
    this.element.prepend(h("figcaption", null, h("div", null, h("strong", null, title), " ", this.hint), this.reading));
    this.element.append(this.legend);
    this.box.addEventListener("mousemove", (event) => this.#read(event.offsetX / this.unit));
    this.box.addEventListener("mouseleave", () => this.#read(null));
  }

  show(x, series) {
    const shown = JSON.stringify([x, series]);
    if (shown === this.shown) return;
    this.shown = shown;
    this.#x = x;
    this.#series = series;
    this.legend.replaceChildren(...(series.length > 1
      ? series.map((s) => h("span", { class: `key ${s.style}` }, s.name)) : []));
    const [last] = series.flatMap((s) => s.values).filter((v) => v !== null && v !== undefined).slice(-1);
    this.root.attr("aria-label", `${this.label}: ${last === undefined ? text.watch.noData : this.#told(last)}`);
    this.redraw();
  }

  setHint(hint) { setText(this.hint, hint); }

  #told(value) { return this.format ? this.format(value) : String(Math.round(value * 1000) / 1000); }

  #has(value) { return value !== null && value !== undefined; }

  draw(root, width, height) {
    const all = this.#series.flatMap((s) => [...s.values, ...(s.low ?? []), ...(s.high ?? [])]).filter(this.#has);
    if (all.length === 0) {
      root.append("text").attr({ class: "nothing", x: width / 2, y: height / 2 }).text(text.watch.noData);
      return;
    }
    let [low, high] = d3.extent([...all, ...this.#series.flatMap((s) => (s.anchors ?? []).map((a) => a.elo))]);
    if (low >= 0 && (this.zero || low < 0.6 * high)) low = 0;
    if (low === high) { low -= 0.5; high += 0.5; }
    const [first, last] = d3.extent(this.#x);
    const x = d3.scale.linear().domain([first, Math.max(last, first + 1)]).range([MARGIN.left + 4, width - MARGIN.right]);
    const y = d3.scale.linear().domain([low, high]).nice(4).range([height - MARGIN.bottom, MARGIN.top]);
    this.axes(root, x, y, { xTicks: Math.min(8, Math.max(last - first, 1)), yFormat: this.format });
    for (const anchor of this.#series.flatMap((s) => s.anchors ?? [])) {
      root.append("line").attr({ class: "anchor", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(anchor.elo), y2: y(anchor.elo) });
      root.append("text").attr({ class: "anchor", x: width - MARGIN.right, y: y(anchor.elo) - 4 }).text(anchor.player);
    }
    for (const series of this.#series) {
      const points = this.#x.map((at, k) => ({ at, value: series.values[k], low: series.low?.[k], high: series.high?.[k] }))
        .filter((point) => this.#has(point.value));
      if (series.low) {
        root.append("path").attr({ class: `band ${series.style}`, d: d3.svg.area().x((p) => x(p.at))
          .y0((p) => y(p.low ?? p.value)).y1((p) => y(p.high ?? p.value))(points) });
      }
      root.append("path").attr({ class: `curve ${series.style}`, d: d3.svg.line().x((p) => x(p.at))
        .y((p) => y(p.value))(points) });
      if (points.length <= 40) {
        root.selectAll(null).data(points).enter().append("circle")
          .attr({ class: `dot ${series.style}`, r: 2.5, cx: (p) => x(p.at), cy: (p) => y(p.value) });
      }
    }
    this.scale = x;
    this.line = root.append("line").attr({ class: "cursor", y1: MARGIN.top, y2: height - MARGIN.bottom, x1: -9, x2: -9 });
  }

  #read(offset) {
    if (!this.scale || this.#x.length === 0) return;
    if (offset === null) { setText(this.reading, ""); this.line.attr({ x1: -9, x2: -9 }); return; }
    const wanted = this.scale.invert(offset);
    const k = this.#x.reduce((best, at, j) => Math.abs(at - wanted) < Math.abs(this.#x[best] - wanted) ? j : best, 0);
    this.line.attr({ x1: this.scale(this.#x[k]), x2: this.scale(this.#x[k]) });
    const told = this.#series.filter((s) => this.#has(s.values[k])).map((s) => this.#told(s.values[k]));
    setText(this.reading, `${this.#x[k]}: ${told.join(" · ")}`);
  }
}
