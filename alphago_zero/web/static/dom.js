// Elements in one expression: h("button", {class: "quiet", onclick}, "Pass"). No HTML is ever parsed from text.

import { text } from "./strings.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "open") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** Holds the place of words that are still to come, so that nothing moves when they do. */
export const BLANK = "\u00a0";

/** Write text only where it changes, so that live regions speak only of news. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

let identifiers = 0;
export const newId = (prefix) => `${prefix}-${++identifiers}`;

/** A labelled form field. */
export function field(label, control) {
  control.id ||= newId("field");
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control);
}

/** A row of buttons of which one is pressed. `choices`: [[value, label], ...]. */
export function segments(label, choices, chosen, onChoose) {
  const buttons = choices.map(([value, name]) =>
    h("button", { type: "button", "aria-pressed": String(value === chosen), onclick: () => choose(value) }, name));
  function choose(value) {
    buttons.forEach((button, k) => button.setAttribute("aria-pressed", String(choices[k][0] === value)));
    onChoose(value);
  }
  return h("div", { class: "segments", role: "group", "aria-label": label }, buttons);
}

/** The models that the site has, to choose from. */
export function modelOptions(site) {
  if (!site.models.length) return [h("option", { value: "" }, text.play.noModel)];
  return site.models.map((entry) => h("option", { value: entry.name },
    text.play.modelName(entry, entry.name === site.default)));
}

/** One element an entry, in order. Those that are there already stay in the document: a click or the focus on them, too. */
export function showList(parent, entries, key, make) {
  const there = new Map([...parent.children].map((element) => [element.dataset.key, element]));
  const wanted = entries.map((entry) => {
    const element = there.get(key(entry)) ?? make(entry);
    element.dataset.key = key(entry);
    return element;
  });
  for (const element of there.values()) if (!wanted.includes(element)) element.remove();
  wanted.forEach((element, k) => { if (parent.children[k] !== element) parent.insertBefore(element, parent.children[k] ?? null); });
}

/** What was kept for this tab, or null. */
export function recall(key) {
  try { return JSON.parse(sessionStorage.getItem(key)); } catch { return null; }
}
export function keep(key, value) {
  try { sessionStorage.setItem(key, JSON.stringify(value)); } catch { /* storage may be forbidden or full */ }
}
