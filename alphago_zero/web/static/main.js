// The frame: header, the three parts of the page, theme.

import { ask } from "./api.js";
import { boardDefinitions } from "./board.js";
import { h, setText } from "./dom.js";
import { PlayPage } from "./play.js";
import { ReviewPage } from "./review.js";
import { text } from "./strings.js";
import { WatchPage } from "./watch.js";

const REFRESH = 5000; // milliseconds
const PAGES = { play: PlayPage, review: ReviewPage, watch: WatchPage };

function themeChooser() {
  const chosen = document.documentElement.dataset.theme ?? "auto";
  const select = h("select", { "aria-label": text.theme, class: "theme", onchange: () => {
    if (select.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = select.value;
    try { localStorage.setItem("theme", select.value); } catch { /* storage may be forbidden */ }
  } }, Object.entries(text.themes).map(([value, name]) => h("option", { value }, name)));
  select.value = chosen;
  return select;
}

function frame() {
  const live = h("div", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  const links = Object.fromEntries(Object.entries(text.tabs).map(([name, label]) =>
    [name, h("a", { href: `#${name}` }, label)]));
  const main = h("main", { id: "content", tabindex: "-1" });
  const skip = h("a", { class: "skip", href: "#content",
    onclick: (event) => { event.preventDefault(); main.focus(); } }, text.skip);
  document.body.append(
    boardDefinitions(), skip,
    h("header", { class: "site" },
      h("h1", null, text.title), h("p", { class: "tagline" }, text.tagline),
      h("nav", { "aria-label": text.navigation }, Object.values(links)), themeChooser()),
    main, live);
  return { main, links, announce: (words) => setText(live, words) };
}

async function begin() {
  const { main, links, announce } = frame();
  let site;
  try {
    site = await ask("/api/site");
  } catch (error) {
    main.append(h("p", { class: "card error", role: "alert" }, error.message));
    return;
  }
  const pages = {};
  let shown = null;
  const open = (name, what) => {
    pages[name] ??= new PAGES[name](site, announce, { open });
    if (location.hash !== `#${name}`) history.pushState(null, "", `#${name}`);
    show(name);
    if (what) pages[name].open(what);
  };
  function show(name) {
    pages[name] ??= new PAGES[name](site, announce, { open });
    if (shown === name) return;
    if (shown) pages[shown].leave();
    shown = name;
    for (const [key, link] of Object.entries(links)) {
      if (key === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${text.tabs[name]} · ${text.title}`;
    main.replaceChildren(pages[name].element);
    pages[name].enter();
  }
  const route = () => show(location.hash.slice(1) in PAGES ? location.hash.slice(1) : "play");
  window.addEventListener("hashchange", route);
  window.addEventListener("dragover", (event) => event.preventDefault());
  window.addEventListener("drop", (event) => {
    event.preventDefault(); // a browser would leave the page for the file
    const [file] = event.dataTransfer.files;
    if (file) open("review", { file });
  });
  setInterval(async () => { // a run makes new models while the page is open
    const before = JSON.stringify(site);
    if (!document.hidden) Object.assign(site, await ask("/api/site").catch(() => ({})));
    if (JSON.stringify(site) !== before) for (const page of Object.values(pages)) page.refresh();
  }, REFRESH);
  route();
}

begin();
