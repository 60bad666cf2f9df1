// Suggestions under the search box, while the person types: a combobox with a list, as WAI-ARIA's
// practices describe it. The focus stays in the field.

import { announce, fill, part, textsOf } from "./base.js";

const TYPING_MS = 80; // from the last key to the request

const texts = textsOf("suggest");
const field = document.getElementById("q");
const list = document.getElementById("suggestions");

let running = null; // the AbortController of the newest request
let timer = 0;

field.setAttribute("role", "combobox");
field.setAttribute("aria-autocomplete", "list");
field.setAttribute("aria-controls", "suggestions");
field.setAttribute("aria-expanded", "false");

function options() {
  return [...list.children];
}

function active() {
  return list.querySelector('[aria-selected="true"]');
}

function choose(option) {
  close();
  if (option.dataset.address) {
    location.assign(option.dataset.address);
    return;
  }
  const rest = field.value.slice(field.selectionStart);
  field.value = option.dataset.query + rest.trimStart();
  const end = option.dataset.query.length;
  field.setSelectionRange(end, end);
  field.focus();
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
}

function select(option) {
  active()?.setAttribute("aria-selected", "false");
  if (!option) {
    field.removeAttribute("aria-activedescendant");
    return;
  }
  option.setAttribute("aria-selected", "true");
  option.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", option.id);
}

function close() {
  clearTimeout(timer);
  running?.abort();
  select(null);
  list.hidden = true;
  field.setAttribute("aria-expanded", "false");
}

async function suggest() {
  running?.abort();
  const request = (running = new AbortController());
  const typed = field.value.slice(0, field.selectionStart);
  let fresh;
  try {
    fresh = await part(`/part/suggest?${new URLSearchParams({ q: typed })}`, { signal: request.signal });
  } catch {
    return; // the hits say what is wrong
  }
  if (running !== request || request.signal.aborted || document.activeElement !== field) return;
  select(null);
  list.replaceChildren(...fresh.children);
  const count = list.childElementCount;
  list.hidden = count === 0;
  field.setAttribute("aria-expanded", String(count > 0));
  if (count) announce(fill(count === 1 ? texts.count_one : texts.count, { n: count }));
}

function later() {
  clearTimeout(timer);
  if (field.value.trim()) timer = setTimeout(suggest, TYPING_MS);
  else close();
}

/** Returns whether the key did something with the list. */
function take(key) {
  const all = options();
  const at = all.indexOf(active());
  if (key === "ArrowDown" && at < all.length - 1) select(all[at + 1]);
  else if (key === "ArrowUp" && at >= 0) select(all[at - 1] ?? null);
  else if (key === "Enter" && at >= 0) choose(all[at]);
  else if (key === "Escape") close();
  else return false;
  return true;
}

field.addEventListener("input", (event) => {
  if (!event.isComposing) later();
});
field.addEventListener("compositionend", later);
field.addEventListener("blur", close);
field.form.addEventListener("submit", close);
field.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (list.hidden) {
    if (event.key === "Enter") close(); // a request may be under way
    return;
  }
  if (take(event.key)) event.preventDefault();
  else if (event.key === "ArrowDown") close(); // behind the last one the hits follow
});
list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
list.addEventListener("click", (event) => {
  const option = event.target.closest("[role=option]");
  if (option) choose(option);
});

// The lists of the fields that filter are long; they come when somebody wants to filter.
const filters = field.form.querySelector("details.filters");
let hasWords = false;

async function loadWords() {
  if (!filters.open || hasWords) return;
  hasWords = true;
  try {
    filters.append(await part("/part/words"));
  } catch {
    hasWords = false;
  }
}

filters.addEventListener("toggle", loadWords);
loadWords();
