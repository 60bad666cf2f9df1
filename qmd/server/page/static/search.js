// Searches while the person types. Without this script the form does the same when it is sent.

import { announce, fill, part, textsOf } from "./base.js";

const TYPING_MS = 60; // from a key to the search by words, if it follows another one quickly
const QUICK_MS = 120; // between two keys that follow each other quickly
const PAUSE_MS = 350; // from the last key to the search by meaning, which takes longer

const texts = textsOf("search");
const form = document.getElementById("search");
const field = document.getElementById("q");
const hits = document.getElementById("hits");
let start = document.getElementById("start"); // null in a page that was loaded with a query
document.documentElement.classList.add("scripted");

let running = null; // the AbortController of the newest request
let timers = [];
let lastKey = 0; // when, in milliseconds
let shown = location.search;

/** The address of what the form says, without its empty fields. */
function parameters() {
  const values = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value && !(name === "mode" && value === "both")) values.append(name, value);
  }
  return values;
}

/** Show other hits. The hit with the focus keeps it, wherever it stands now. */
function show(fragment) {
  const withoutLine = (link) => link.getAttribute("href").split("?")[0];
  const focused = hits.contains(document.activeElement) && document.activeElement.closest(".hit a");
  const same = focused && withoutLine(focused);
  hits.replaceChildren(fragment);
  if (!same) return;
  const links = [...hits.querySelectorAll(".hit h2 a")];
  (links.find((link) => withoutLine(link) === same) ?? field).focus({ preventScroll: true });
}

/** What the view shows without a query, if the page was loaded with one. */
async function showStart(signal) {
  if (start) return;
  try {
    const page = await part("/", { signal });
    start = page.querySelector("#start");
    if (start) hits.after(start);
  } catch {
    // A newer search has begun, or the server is away: the view stays as it is.
  }
}

/** Search; `typing` asks for what is quick: the hits by words, without names that may be meant. */
async function search({ typing = false } = {}) {
  running?.abort();
  const request = (running = new AbortController());
  const values = parameters();
  const address = values.toString() ? `/?${values}` : "/";
  if (typing) values.set("mode", "words");
  if (typing) values.set("typing", "");
  start?.toggleAttribute("hidden", values.has("q"));
  if (!values.has("q")) {
    hits.replaceChildren();
    hits.setAttribute("aria-busy", "false");
    history.replaceState(null, "", address);
    shown = location.search;
    await showStart(request.signal);
    return;
  }
  hits.setAttribute("aria-busy", "true");
  try {
    const fragment = await part(`/part/hits?${values}`, { signal: request.signal });
    show(fragment);
    if (location.pathname + location.search !== address) history.replaceState(null, "", address);
    shown = location.search;
    const count = hits.querySelectorAll(".hit").length;
    announce(fill(count === 1 ? texts.count_one : texts.count, { n: count }));
  } catch (error) {
    if (error.name === "AbortError") return;
    const notice = document.createElement("div");
    notice.className = "notice bad";
    notice.setAttribute("role", "alert");
    notice.textContent = error.message;
    hits.replaceChildren(notice);
  } finally {
    if (running === request) hits.setAttribute("aria-busy", "false");
  }
}

function later() {
  timers.forEach(clearTimeout);
  const mode = new FormData(form).get("mode");
  const wait = performance.now() - lastKey > QUICK_MS ? 0 : TYPING_MS;
  lastKey = performance.now();
  timers = [
    ...(mode === "meaning" ? [] : [setTimeout(() => search({ typing: true }), wait)]),
    setTimeout(() => {
      if (mode !== "words" || !hits.querySelector(".hit")) search();
    }, PAUSE_MS),
  ];
}

field.addEventListener("input", (event) => {
  if (!event.isComposing) later();
});
field.addEventListener("compositionend", later);
form.addEventListener("change", (event) => {
  if (event.target !== field && field.value) search();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  timers.forEach(clearTimeout);
  const address = parameters().toString();
  if (`?${address}` !== shown) history.pushState(null, "", address ? `/?${address}` : "/");
  search();
});
window.addEventListener("popstate", () => location.reload());
// What was typed while this script was on its way.
if (field.value !== field.defaultValue) later();
