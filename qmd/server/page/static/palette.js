// The palette, Ctrl+K: notes by name and by words, what can be done here, and notes seen before.

import { textsOf } from "./base.js";
import { offer } from "./suggest.js";

const RECENT = "qmd-recent"; // in the storage of the browser: the notes seen last
const MOST_RECENT = 20;
const MOST_COMMANDS = 6; // while something is typed

const texts = textsOf("palette");
const dialog = document.getElementById("palette");
const form = dialog.querySelector("form");
const field = form.querySelector("input");
const list = dialog.querySelector("[role=listbox]");

// --- notes seen before --------------------------------------------------------------------

function recent() {
  try {
    return JSON.parse(localStorage.getItem(RECENT)).filter((each) => each.address.startsWith("/"));
  } catch {
    return []; // storage is off, or somebody else's value
  }
}

function keepRecent(seen) {
  try {
    localStorage.setItem(RECENT, JSON.stringify(seen.slice(0, MOST_RECENT)));
  } catch {
    // The palette has none, then.
  }
}

if (/^\/(note|photo)\//.test(location.pathname) && document.querySelector("[data-docid], .photo-nav")) {
  const address = location.pathname;
  const title = document.title.replace(/ · qmd$/, "");
  keepRecent([{ address, title }, ...recent().filter((each) => each.address !== address)]);
}
document.querySelector(".log-out")?.addEventListener("submit", () => keepRecent([]));

// --- choices ------------------------------------------------------------------------------

let commands = []; // what each choice that needs no request does, by its number

function choice(kind, text, detail, act) {
  const element = document.createElement("div");
  element.setAttribute("role", "option");
  element.setAttribute("aria-selected", "false");
  element.id = `command-${commands.length}`;
  commands.push(act);
  for (const [name, words] of [["kind", kind], ["text", text], ["detail", detail]]) {
    const part = document.createElement("span");
    part.className = name;
    part.textContent = words;
    if (name === "kind") part.setAttribute("aria-hidden", "true");
    element.append(part, " ");
  }
  return element;
}

/** The words of an element without the keys that it shows. */
function wordsOf(element) {
  const copy = element.cloneNode(true);
  for (const key of copy.querySelectorAll("kbd, select, input")) key.remove();
  return copy.textContent.trim();
}

/** What can be done here: the links and buttons of the frame and of the view. */
function things() {
  const found = document.querySelectorAll(
    ".top nav a, .note-actions :is(a, button), [data-key], .foot :is(a, button)",
  );
  const isThere = (each) => !each.closest("[hidden], dialog, :disabled, [data-palette]")
    && (each.getClientRects().length > 0 || each.closest("details:not([open])") !== null);
  return [...new Set(found)].filter(isThere).map((each) => ({
    text: each.getAttribute("aria-label") || wordsOf(each.labels?.[0] ?? each),
    key: each.dataset.key ?? "",
    act: () => (each.matches("input, select, textarea") ? each.focus() : each.click()),
  })).concat([
    { text: texts.back, key: "[", act: () => history.back() },
    { text: texts.forward, key: "]", act: () => history.forward() },
  ]);
}

/** Whether each word that was typed begins a word of the text, or stands in a Chinese one. */
function suits(text, typed) {
  const folded = text.toLowerCase();
  return typed.toLowerCase().split(/\s+/).every((word) =>
    folded.split(/[\s/#]+/).some((each) => each.startsWith(word)) || (/[^\x00-\x7f]/.test(word) && folded.includes(word)));
}

function local() {
  commands = [];
  const typed = field.value.replace(/^>/, "").trim();
  const wanted = things().filter((each) => !typed || suits(each.text, typed));
  const shown = typed && !field.value.startsWith(">") ? wanted.slice(0, MOST_COMMANDS) : wanted;
  const actions = () => shown.map((each) => choice(">", each.text, each.key, each.act));
  if (field.value.startsWith(">")) return actions();
  const seen = recent()
    .filter((each) => each.address !== location.pathname && (!typed || suits(each.title, typed)))
    .slice(0, typed ? 3 : 8)
    .map((each) => {
      const folder = decodeURIComponent(each.address).split("/").slice(2, -1).join("/");
      const element = choice("↺", each.title, folder, null);
      element.dataset.address = each.address;
      return element;
    });
  return [...seen, ...actions()];
}

offer(field, list, {
  selectsFirst: () => true,
  local,
  address() {
    const typed = field.value.trim();
    if (!typed || typed.startsWith(">")) return null;
    return `/part/palette?${new URLSearchParams({ q: typed })}`;
  },
  take(chosen, event) {
    dialog.close();
    const { address } = chosen.dataset;
    if (address === undefined) {
      commands[Number(chosen.id.replace("command-", ""))]();
      return;
    }
    // A view of a note may show another one beside it.
    const beside = new CustomEvent("qmd-beside", { detail: address, cancelable: true });
    if (!event.shiftKey || document.dispatchEvent(beside)) location.assign(address);
  },
});

// --- the dialog ---------------------------------------------------------------------------

function open() {
  if (document.querySelector("dialog[open]")) return;
  dialog.showModal();
  field.value = "";
  field.focus();
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
}

dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close(); // beside it
});
field.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.isComposing) dialog.close(); // the list has closed by itself
}, true);
document.addEventListener("keydown", (event) => {
  if (event.key !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  if (dialog.open) dialog.close();
  else open();
});
for (const button of document.querySelectorAll("[data-palette]")) {
  button.hidden = false;
  button.addEventListener("click", open);
}
