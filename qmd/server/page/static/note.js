// The note view: scrolls to the line asked for, marks the current section in the outline, copies
// addresses, and loads similar notes when they come into sight.

import { announce, part, textsOf } from "./base.js";

const texts = textsOf("note");

const marked = document.querySelector(".content .at");
if (marked !== null && (!location.hash || location.hash.includes("="))) marked.scrollIntoView({ block: "center" });

// A page or another place that a link names as viewers do, #page=12, when something else is shown.
function toPlace() {
  const place = decodeURIComponent(location.hash.slice(1));
  if (!/^[a-z]+=./.test(place) || document.getElementById(place) !== null) return;
  const address = new URLSearchParams(location.search);
  if (address.get("at") === place) return;
  for (const name of ["line", "page", "message", "sheet", "part"]) address.delete(name);
  address.set("at", place);
  location.replace(`?${address}${location.hash}`);
}

addEventListener("hashchange", toPlace);
toPlace();

// What is wider than the text scrolls by the arrow keys once it has the focus.
for (const frame of document.querySelectorAll(".content :is(.scroll, pre, .formula, p, ul, ol)")) {
  if (frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0;
}

// A picture leads to its file, which may be larger than what is shown.
for (const picture of document.querySelectorAll(".content img")) {
  if (picture.closest("a, button, figure.page") !== null) continue;
  const address = new URL(picture.src, location.href).pathname.replace(/^\/shown\//, "/file/");
  if (!address.startsWith("/file/")) continue;
  const link = document.createElement("a");
  link.href = address;
  if (!picture.alt) link.setAttribute("aria-label", texts.picture);
  picture.replaceWith(link);
  link.append(picture);
}

// --- the current section ---

const links = new Map();
for (const link of document.querySelectorAll(".outline a[href^='#']")) {
  const heading = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  if (heading !== null) links.set(heading, link);
}

function markSection() {
  let current = null;
  for (const heading of links.keys()) {
    if (current !== null && heading.getBoundingClientRect().top > innerHeight * 0.2) break;
    current = heading;
  }
  for (const [heading, link] of links) {
    const was = link.hasAttribute("aria-current");
    if (heading !== current) link.removeAttribute("aria-current");
    else if (!was) {
      link.setAttribute("aria-current", "true");
      keepInSight(link);
    }
  }
}

/** Scroll the column beside the text, not the page. */
function keepInSight(link) {
  const column = link.closest(".note-beside");
  if (column.scrollHeight <= column.clientHeight) return;
  const [box, frame] = [link.getBoundingClientRect(), column.getBoundingClientRect()];
  if (box.top < frame.top) column.scrollTop -= frame.top - box.top + 40;
  else if (box.bottom > frame.bottom) column.scrollTop += box.bottom - frame.bottom + 40;
}

// That of a page of a PDF is known from the beginning.
const current = document.querySelector(".outline a[aria-current]");
if (current !== null) keepInSight(current);

if (links.size > 0) {
  let waiting = false;
  addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      markSection();
    });
  }, { passive: true });
  markSection();
}

// --- the menu ---

for (const item of document.querySelectorAll("[data-copying]")) {
  item.hidden = false;
  const button = item.querySelector("[data-copy]");
  button.addEventListener("click", async () => {
    const value = button.dataset.copy || location.href.split("#")[0];
    try {
      await navigator.clipboard.writeText(value);
      announce(texts.copied);
    } catch {
      announce(texts.not_copied);
    }
    closeMenus();
  });
}

function closeMenus() {
  for (const menu of document.querySelectorAll(".menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
}

addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeMenus();
});
addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll(".menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// --- similar notes ---

const similar = document.getElementById("similar");

const MAKES_VECTORS = ["embedding", "synced", "connected", "missed"]; // the events after which there may be some
const PAUSE_MS = 1000; // between two looks at the server
let similarTimer = 0;

async function loadSimilar() {
  similarTimer = 0;
  const place = similar.querySelector(".similar");
  place.setAttribute("aria-busy", "true");
  try {
    place.replaceChildren(await part(similar.dataset.address));
  } catch (error) {
    const words = document.createElement("p");
    words.className = "muted";
    words.dataset.problem = "";
    words.textContent = error.message;
    place.replaceChildren(words);
  } finally {
    place.removeAttribute("aria-busy");
  }
}

if (similar !== null && similar.querySelector("a[href^='?similar']") !== null) {
  const watcher = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watcher.disconnect();
    loadSimilar();
  }, { rootMargin: "200px" });
  watcher.observe(similar);
}

if (similar !== null) {
  document.addEventListener("qmd:event", (event) => {
    if (similarTimer || !MAKES_VECTORS.includes(event.detail.kind)) return;
    if (similar.querySelector("[data-problem]") !== null) similarTimer = setTimeout(loadSimilar, PAUSE_MS);
  });
}
