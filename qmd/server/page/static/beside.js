// A second note beside the one that is shown: Alt and a click on a link, Alt+Enter on one that has
// the focus, or Shift+Enter in the palette.

import { announce, send, textsOf } from "./base.js";

const texts = textsOf("beside");
const columns = document.querySelector(".note-columns");
let panel = null;
let before = null; // what had the focus

function close() {
  panel?.remove();
  panel = null;
  columns.classList.remove("with-other");
  before?.focus();
}

/** The text of the other note: it can be read, and its links lead on. */
function copied(note, address) {
  for (const each of note.querySelectorAll("[id]")) each.removeAttribute("id");
  for (const each of note.querySelectorAll("[role=checkbox]")) {
    each.removeAttribute("tabindex");
    each.setAttribute("aria-disabled", "true");
  }
  for (const link of note.querySelectorAll("a[href^='#']")) link.href = address + link.getAttribute("href");
  for (const each of note.querySelectorAll("[autofocus]")) each.removeAttribute("autofocus");
  return note;
}

async function open(address) {
  const page = await send(address);
  const parsed = new DOMParser().parseFromString(await page.text(), "text/html");
  const note = parsed.querySelector("article.content");
  if (note === null) {
    location.assign(address); // a photo, for example
    return;
  }
  before ??= document.activeElement;
  panel?.remove();
  panel = document.createElement("section");
  panel.className = "note-other";
  panel.tabIndex = -1;
  const title = parsed.title.replace(/ · qmd$/, "");
  panel.setAttribute("aria-label", title);
  const head = document.createElement("header");
  const link = document.createElement("a");
  const button = document.createElement("button");
  link.href = address;
  link.textContent = title;
  button.type = "button";
  button.textContent = texts.close;
  button.addEventListener("click", close);
  head.append(link, button);
  const [whole, hash] = address.split("#");
  const place = hash ? note.querySelector(`#${CSS.escape(decodeURIComponent(hash))}`) : null;
  const article = copied(note, whole);
  panel.append(head, article);
  columns.append(panel);
  columns.classList.add("with-other");
  panel.focus();
  if (place !== null) {
    panel.scrollTop += place.getBoundingClientRect().top - panel.getBoundingClientRect().top - 64;
  }
  announce(title);
}

/** The note that a link leads to; null if it leads elsewhere. */
function noteOf(link) {
  return link !== null && link.origin === location.origin && link.pathname.startsWith("/note/") ? link.href : null;
}

function openOrLeave(address) {
  open(address).catch(() => location.assign(address));
}

document.addEventListener("click", (event) => {
  const address = noteOf(event.target.closest("a[href]"));
  if (address === null || !event.altKey) return;
  event.preventDefault();
  openOrLeave(address);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && panel !== null && !document.querySelector("dialog[open]")) close();
  if (event.key !== "Enter" || !event.altKey) return;
  const address = noteOf(document.activeElement.closest("a[href]"));
  if (address === null) return;
  event.preventDefault();
  openOrLeave(address);
});
document.addEventListener("qmd-beside", (event) => {
  if (!event.detail.startsWith("/note/")) return;
  event.preventDefault();
  openOrLeave(event.detail);
});
