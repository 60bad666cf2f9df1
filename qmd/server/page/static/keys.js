// The keys of all views.
//
// An element with data-key="e" is clicked, or focused if it is a field, when the person presses the
// key; data-key="g s" is one key after the other. The arrows move through the rows of lists with
// data-walk: each row's first link gets the focus. No key does anything while the person types in
// a field, but for the arrows in the field that searches.

import { part } from "./base.js";

const SEQUENCE_MS = 1500; // between two keys of a sequence
const SWITCH = "qmd-keys"; // in the storage of the browser: "off" if the person wants no such keys
const KEYS = /^\S( \S)*$/;
const FIELDS = "input, select, textarea, [contenteditable]";

let typed = [];
let timer = 0;

function areOn() {
  return localStorage.getItem(SWITCH) !== "off";
}

function isShown(element) {
  return element.getClientRects().length > 0;
}

function keyed() {
  return [...document.querySelectorAll("[data-key]")].filter(isShown);
}

function act(element) {
  if (element.matches(FIELDS)) element.focus();
  else element.click();
}

// -- keys and sequences of keys --

/** Take the next key; returns whether it means something. */
function press(key) {
  clearTimeout(timer);
  const before = typed;
  typed = [...typed, key];
  const sequence = typed.join(" ");
  const target = keyed().find((element) => element.dataset.key === sequence);
  if (target) {
    typed = [];
    act(target);
    return true;
  }
  if (keyed().some((element) => element.dataset.key.startsWith(`${sequence} `))) {
    timer = setTimeout(() => (typed = []), SEQUENCE_MS);
    return true;
  }
  typed = [];
  if (before.length) return press(key);
  if (key === "/") return toSearch();
  if (key === "?" || key === "？") return showHelp();
  if (key === "[" || key === "【") return go(-1);
  if (key === "]" || key === "】") return go(1);
  return false;
}

/** One view back, or forward. */
function go(step) {
  history.go(step);
  return true;
}

function toSearch() {
  const field = document.getElementById("q");
  if (field) {
    field.focus();
    field.select();
  } else {
    location.assign("/");
  }
  return true;
}

// -- lists --

function rows() {
  return [...document.querySelectorAll("[data-walk] > *")]
    .map((row) => row.querySelector("a[href]:not([tabindex='-1'])"))
    .filter((link) => link && isShown(link));
}

/** Move the focus through the rows of lists; returns whether the key did so. */
function walk(event) {
  const field = document.getElementById("q");
  const links = rows();
  const at = links.findIndex((link) => link === document.activeElement);
  const inField = field !== null && document.activeElement === field;
  const isLetter = areOn() && !event.target.closest(FIELDS);
  const down = event.key === "ArrowDown" ? at >= 0 || inField : isLetter && event.key === "j";
  const up = event.key === "ArrowUp" ? at >= 0 : isLetter && event.key === "k" && at >= 0;
  if (down && links[at + 1]) links[at + 1].focus();
  else if (up && at > 0) links[at - 1].focus();
  else if ((up || (event.key === "Escape" && at >= 0)) && field) field.focus();
  else return false;
  return true;
}

// -- help --

function showHelp() {
  const existing = document.getElementById("help");
  if (existing) existing.showModal();
  else loadHelp();
  return true;
}

async function loadHelp() {
  const dialog = document.createElement("dialog");
  dialog.id = "help";
  dialog.setAttribute("aria-labelledby", "help-title");
  dialog.append(await part("/part/help"));
  if (document.getElementById("help")) return; // asked for twice
  document.body.append(dialog);
  const section = dialog.querySelector("[data-keys-of-view]");
  const list = section.querySelector("dl");
  for (const element of document.querySelectorAll("main [data-key]")) {
    if (!KEYS.test(element.dataset.key)) continue;
    const row = document.createElement("div");
    const key = document.createElement("dt");
    const what = document.createElement("dd");
    key.append(document.createElement("kbd"));
    key.firstChild.textContent = element.dataset.key;
    what.textContent = element.getAttribute("aria-label") || element.textContent.trim();
    row.append(key, what);
    list.append(row);
    section.hidden = false;
  }
  const label = dialog.querySelector("[data-keys-switch]");
  const box = label.querySelector("input");
  label.hidden = false;
  box.checked = areOn();
  box.addEventListener("change", () => localStorage.setItem(SWITCH, box.checked ? "on" : "off"));
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });
  dialog.showModal();
}

document.querySelector("[data-help]")?.addEventListener("click", (event) => {
  event.preventDefault();
  showHelp();
});

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]")) return;
  const isHandled =
    walk(event) ||
    (areOn() && event.key.length === 1 && !event.target.closest(FIELDS) && press(event.key));
  if (isHandled) event.preventDefault();
});
