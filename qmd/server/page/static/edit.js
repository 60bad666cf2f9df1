// The editor: colours and a preview while typing, notes, tags and properties to choose from, drafts
// kept in the browser, saving without leaving.

import { announce, fill, part, send, textsOf } from "./base.js";
import { offer } from "./suggest.js";
import { editTable } from "./table.js";
import { colour } from "./colours.js";
import { attach, insert, takeFiles } from "./attach.js";

const texts = textsOf("edit");
const form = document.getElementById("editor");
const conflict = document.getElementById("conflict");

const DRAFTS = "qmd-draft:";
const MAX_DRAFTS = 20; // the oldest are dropped
const PREVIEW_MS = 250; // without a key
const DRAFT_MS = 400;
const AUTOSAVE_MS = 2_000; // without a key
const ONE_CHANGE_MS = 600_000; // what is saved by itself within this time is one change
const MAX_BODY = 4 * 1024 * 1024; // bytes of a request that the server reads

// --- drafts: what was typed and is not saved stays in this browser ------------------------

const drafts = {
  read(file) {
    try {
      return JSON.parse(localStorage.getItem(DRAFTS + file));
    } catch {
      return null; // storage is off, or somebody else's value
    }
  },
  keep(file, draft) {
    try {
      localStorage.setItem(DRAFTS + file, JSON.stringify({ ...draft, time: Date.now() }));
      const names = Object.keys(localStorage).filter((name) => name.startsWith(DRAFTS));
      const age = (name) => drafts.read(name.slice(DRAFTS.length))?.time ?? 0;
      names.sort((one, other) => age(other) - age(one));
      for (const name of names.slice(MAX_DRAFTS)) localStorage.removeItem(name);
    } catch {
      // Storage is off or full: the warning before leaving remains.
    }
  },
  drop(file) {
    try {
      localStorage.removeItem(DRAFTS + file);
    } catch {
      // There is none.
    }
  },
};

/**
 * Send a form as a script does, and load the view that the server names. So the draft is kept until
 * the server has written it. Rejects if the server did not: then the form is sent by the browser,
 * and the answer is a page that says what is wrong.
 */
async function sendAndLeave(form, submitter, file) {
  const body = new URLSearchParams(new FormData(form, submitter));
  body.set("leave", "1");
  if (body.toString().length > MAX_BODY) throw new RangeError(texts.too_long);
  const answer = await send(form.getAttribute("action"), { body, accept: "application/json" });
  const { address } = await answer.json();
  drafts.drop(file);
  location.assign(address);
}

function remembered(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** A time of today as 17:37, another one with its day, as the server writes it. */
function time(value = Date.now()) {
  const [at, now] = [new Date(value), new Date()];
  const two = (number) => String(number).padStart(2, "0");
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (at.toDateString() === now.toDateString()) return clock;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`;
}

// --- the text -----------------------------------------------------------------------------

const LIST_ITEM = /^(\s*)([-*+]|\d{1,9}[.)])( +)(\[.\] )?/;

/** Replace the selection as if it had been typed, so that the browser can undo it. */
function type(area, start, end, words) {
  area.setSelectionRange(start, end);
  const isTyped = words === ""
    ? document.execCommand("delete")
    : document.execCommand("insertText", false, words);
  if (!isTyped) area.setRangeText(words, start, end, "end");
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

function lineAt(area) {
  const start = area.value.lastIndexOf("\n", area.selectionStart - 1) + 1;
  const next = area.value.indexOf("\n", area.selectionStart);
  const end = next < 0 ? area.value.length : next;
  return { start, end, words: area.value.slice(start, end) };
}

/** Go on with the list on the next line; an empty item ends the list. */
function continueList(area, event) {
  if (area.selectionStart !== area.selectionEnd) return;
  const line = lineAt(area);
  const item = LIST_ITEM.exec(line.words);
  if (item === null || area.selectionStart < line.start + item[0].length) return;
  event.preventDefault();
  if (line.words.trim() === item[0].trim()) {
    type(area, line.start, line.end, "");
    return;
  }
  const number = parseInt(item[2], 10);
  const mark = Number.isNaN(number) ? item[2] : `${number + 1}${item[2].at(-1)}`;
  type(area, area.selectionStart, area.selectionEnd, `\n${item[1]}${mark}${item[3]}${item[4] ? "[ ] " : ""}`);
}

/** Indent the item of a list. Elsewhere, and after Escape, Tab leads on to the next control. */
function indentItem(area, event) {
  const line = lineAt(area);
  if (area.selectionStart !== area.selectionEnd || !LIST_ITEM.test(line.words)) return;
  const at = area.selectionStart;
  const removed = /^(\t| {1,2})/.exec(line.words)?.[0].length ?? 0;
  if (event.shiftKey && !removed) return;
  event.preventDefault();
  if (event.shiftKey) {
    type(area, line.start, line.start + removed, "");
    area.setSelectionRange(Math.max(line.start, at - removed), Math.max(line.start, at - removed));
  } else {
    type(area, line.start, line.start, "  ");
    area.setSelectionRange(at + 2, at + 2);
  }
}

function wrap(area, event, mark) {
  event.preventDefault();
  const { selectionStart: start, selectionEnd: end } = area;
  type(area, start, end, mark + area.value.slice(start, end) + mark);
  area.setSelectionRange(start + mark.length, end + mark.length);
}

function keysOf(area, save) {
  let tabLeaves = false;
  area.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const command = (event.ctrlKey || event.metaKey) && !event.altKey;
    if (event.key === "Tab" && !command && !tabLeaves) indentItem(area, event);
    else if (event.key === "Enter" && !command && !event.shiftKey) continueList(area, event);
    else if (command && event.key === "b") wrap(area, event, "**");
    else if (command && event.key === "i") wrap(area, event, "*");
    tabLeaves = event.key === "Escape";
  });
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.isComposing) return;
    if (event.key === "s") {
      event.preventDefault();
      save(false);
    } else if (event.key === "Enter") {
      event.preventDefault();
      save(true);
    }
  });
}

// --- choices: notes after [[, tags after #, keys and values of properties ----------------

const OPEN_LINK = /\[\[([^[\]\n|#^]{1,100})$/;
const OPEN_TAG = /(?:^|\s)#([\p{L}\p{N}_/-]{1,100})$/u;
const KEY = /^([\p{L}\p{N}_ -]{1,100})$/u;
const VALUE = /^([\p{L}\p{N}_ -]{1,100}):\s*(?:\[(?:[^\]]*,)?\s*)?["']?([^"'[\],]{1,100})$/u;
const ITEM = /^\s*-\s+["']?([^"']{1,100})$/;
const ITEM_OF = /^([\p{L}\p{N}_ -]{1,100}):\s*$/u;
const MOST_PROPERTIES = 20_000; // characters of the properties of a note that are looked at

/** What is typed before the caret that may be completed: its kind, its text, and its property. */
function typedIn(area) {
  const at = area.selectionStart;
  if (at !== area.selectionEnd) return null;
  const line = area.value.slice(area.value.lastIndexOf("\n", at - 1) + 1, at).slice(-300);
  const link = OPEN_LINK.exec(line);
  if (link !== null) return { kind: "link", name: link[1], length: link[0].length };
  const before = area.value.slice(0, Math.min(at, MOST_PROPERTIES));
  const isInProperties = /^---\n/.test(before) && at <= MOST_PROPERTIES && !/\n(---|\.\.\.)\n/.test(before);
  if (isInProperties) return typedInProperties(line, before);
  const tag = OPEN_TAG.exec(line);
  return tag && { kind: "property", key: "tags", name: tag[1], length: tag[1].length };
}

function typedInProperties(line, before) {
  const found = (key, name) => ({ kind: "property", key, name, length: name.length });
  const value = VALUE.exec(line);
  if (value !== null) return found(value[1].trim(), value[2]);
  const item = ITEM.exec(line);
  if (item !== null) {
    const lines = before.split("\n").reverse();
    const key = lines.map((each) => ITEM_OF.exec(each)).find((each) => each !== null);
    return key ? found(key[1].trim(), item[1]) : null;
  }
  return KEY.test(line) ? found("", line) : null;
}

/** Offer what may follow at the caret; notes are those of `collection()`. */
function complete(area, placeOf, collection) {
  const list = document.getElementById("links");
  let isTaken = false; // the choice that was just typed is no reason for others
  offer(area, list, {
    // Enter takes the first note, as in other editors; after a tag or a value it ends the line.
    selectsFirst: () => typedIn(area)?.kind === "link",
    address() {
      const typed = isTaken ? null : typedIn(area);
      if (typed === null) return null;
      const { kind, key, name } = typed;
      if (kind === "link") return `/part/links?${new URLSearchParams({ name, collection: collection() })}`;
      return `/part/properties?${new URLSearchParams({ key, name })}`;
    },
    take(choice) {
      const end = area.selectionStart;
      const typed = typedIn(area);
      if (typed === null) return;
      const start = end - typed.name.length;
      isTaken = true;
      if (typed.kind === "link") {
        const after = area.value.startsWith("]]", end) ? 2 : 0;
        type(area, start, end + after, `${choice.dataset.link}]]`);
      } else {
        const text = choice.dataset.text.replace(/^#/, "");
        type(area, start, end, typed.key ? text : `${text.replace(/:$/, "")}: `);
      }
      isTaken = false;
    },
    place() {
      const typed = typedIn(area);
      const frame = list.parentElement.getBoundingClientRect();
      const at = placeOf(area.selectionStart - (typed?.length ?? 0)) ?? area.getBoundingClientRect();
      const left = Math.min(at.left - frame.left, frame.width - list.offsetWidth);
      list.style.insetInlineStart = `${Math.max(0, left)}px`;
      const isBelow = at.bottom + list.offsetHeight + 4 <= innerHeight || at.top < list.offsetHeight + 4;
      list.style.top = `${(isBelow ? at.bottom + 4 : at.top - list.offsetHeight - 4) - frame.top}px`;
    },
  });
}

// --- the editor ---------------------------------------------------------------------------

function startEditor() {
  const area = document.getElementById("text");
  const panes = form.querySelector(".edit-panes");
  const preview = document.getElementById("pane-preview");
  const state = document.getElementById("edit-state");
  const file = form.dataset.file;
  const mayWrite = !area.readOnly;
  let saved = "unsaved" in form.dataset ? null : area.defaultValue; // the text that the file has
  let leaves = false;

  document.documentElement.classList.add("has-script");
  form.querySelector(".edit-tools").hidden = false;
  document.getElementById("edit-help").hidden = !mayWrite;
  preview.hidden = false;

  const placeOf = colour(area);
  if (mayWrite) {
    complete(area, placeOf, () => field("collection")?.value ?? file.split("/", 1)[0]);
  }

  form.querySelector("[data-edit-table]")?.addEventListener("click", () => {
    editTable(area, (start, end, words) => type(area, start, end, words), say);
  });

  const isDirty = () => area.value !== saved;
  const field = (name) => form.elements.namedItem(name);

  // The preview
  let waiting = null;
  let request = null;
  async function show() {
    request?.abort();
    request = new AbortController();
    const folder = field("folder")?.value ?? "";
    const body = { text: area.value, file: file || `${field("collection").value}/${folder}/new.md` };
    try {
      const html = await part("/part/preview", { body, signal: request.signal });
      preview.replaceChildren(html);
      follow();
    } catch (error) {
      if (error.name !== "AbortError") state.textContent = error.message;
    }
  }
  function follow() {
    const height = area.scrollHeight - area.clientHeight;
    const share = height > 0 ? area.scrollTop / height : 0;
    preview.scrollTop = share * (preview.scrollHeight - preview.clientHeight);
  }
  area.addEventListener("scroll", follow, { passive: true });

  // The name of a new note
  const name = field("name");
  let isNameTyped = name !== null && name.value !== "";
  name?.addEventListener("input", () => { isNameTyped = name.value !== ""; });
  function suggestName() {
    if (name === null || isNameTyped) return;
    const body = area.value.replace(/^---\n[^]*?\n---\n/, "").trimStart();
    name.value = body.split("\n", 1)[0].replace(/^#+\s*/, "")
      .replace(/[\\/<>:"|?*#^[\]\s]+/g, " ").slice(0, 80).replace(/^[ .]+|[ .]+$/g, "");
  }

  // What is not saved
  let draftTimer = null;
  function keepDraft() {
    clearTimeout(draftTimer);
    draftTimer = null;
    if (!mayWrite) return;
    if (!isDirty()) drafts.drop(file);
    else drafts.keep(file, { text: area.value, docid: field("docid")?.value, base: field("base")?.value });
  }
  area.addEventListener("input", () => {
    if (!isRefused) state.textContent = isDirty() ? texts.state_unsaved : "";
    suggestName();
    clearTimeout(waiting);
    waiting = setTimeout(show, PREVIEW_MS);
    draftTimer ??= setTimeout(keepDraft, DRAFT_MS);
    saveLater();
  });
  addEventListener("pagehide", () => { if (draftTimer !== null) keepDraft(); });
  addEventListener("beforeunload", (event) => {
    if (!leaves && mayWrite && saved !== null && isDirty()) event.preventDefault();
  });
  form.addEventListener("submit", (event) => {
    keepDraft();
    const line = field("line");
    if (line) line.value = area.value.slice(0, area.selectionStart).split("\n").length;
    if (leaves || (event.submitter?.value || "save") !== "save") return;
    event.preventDefault();
    leaves = true;
    sendAndLeave(form, event.submitter, file).catch((error) => {
      if (error instanceof RangeError) {
        leaves = false;
        say(error.message);
      } else {
        form.requestSubmit(event.submitter);
      }
    });
  });
  addEventListener("pageshow", (event) => { if (event.persisted) leaves = false; });

  // A draft from before
  const box = document.getElementById("draft");
  const draft = drafts.read(file);
  if (draft !== null && typeof draft.text === "string" && mayWrite && saved !== null) {
    if (draft.text === area.value) drafts.drop(file);
    else {
      box.hidden = false;
      box.querySelector("p").textContent = fill(texts.draft_found, { time: time(draft.time) });
    }
  }
  box.addEventListener("click", (event) => {
    const action = event.target.dataset.draft;
    if (!action) return;
    box.hidden = true;
    if (action === "discard") drafts.drop(file);
    else {
      // With the text it began with: if the file has changed since, that is a conflict.
      area.value = draft.text;
      if (field("docid") && draft.docid) field("docid").value = draft.docid;
      if (field("base") && draft.base !== undefined) field("base").value = draft.base;
      area.dispatchEvent(new Event("input", { bubbles: true }));
    }
    area.focus();
  });

  // Saving
  async function save(closes) {
    if (!mayWrite) return;
    if (closes || !file || saved === null) {
      form.requestSubmit(form.querySelector("button.first"));
      return;
    }
    if (!isDirty()) {
      say(texts.state_unchanged);
      return;
    }
    try {
      await put();
      going = null; // a text that the person has saved stays in the history
    } catch {
      leaves = true; // as a form: the answer is a page that says what is wrong
      form.requestSubmit(form.querySelector("button.first"));
    }
  }
  async function put(continues = "") {
    const sent = area.value;
    const body = { action: "save", docid: field("docid").value, text: sent, continues };
    if (field("base")) body.base = field("base").value;
    const answer = await send(form.getAttribute("action"), { body, accept: "application/json" });
    const { docid, change } = await answer.json();
    saved = sent;
    field("docid").value = docid;
    if (field("base")) field("base").value = sent;
    keepDraft();
    say(fill(texts.state_saved, { time: time() }));
    return change;
  }

  // Saving by itself, after a pause and when the window is left
  const auto = document.getElementById("autosave");
  let going = null; // the change that the next one belongs to, and when it began
  let pause = null;
  let isSaving = false;
  let isRefused = false;
  function saveLater() {
    clearTimeout(pause);
    if (mayAutosave()) pause = setTimeout(saveNow, AUTOSAVE_MS);
  }
  function mayAutosave() {
    return mayWrite && file && auto?.checked && saved !== null && !leaves && !isRefused;
  }
  async function saveNow() {
    clearTimeout(pause);
    if (!mayAutosave() || !isDirty() || isComposing) return;
    if (isSaving) {
      saveLater();
      return;
    }
    isSaving = true;
    try {
      if (going !== null && Date.now() - going.began > ONE_CHANGE_MS) going = null;
      const change = await put(going?.change);
      if (change) going = { change, began: going?.began ?? Date.now() };
      if (isDirty()) saveLater();
    } catch (error) {
      say(error.message); // the text is kept in this browser
      if (error.status === undefined) return; // no answer: the next pause tries again
      isRefused = true;
      const see = document.createElement("button");
      see.textContent = texts.see_why;
      see.value = "save";
      see.name = "action";
      state.append(" ", see);
    } finally {
      isSaving = false;
    }
  }
  let isComposing = false;
  area.addEventListener("compositionstart", () => { isComposing = true; });
  area.addEventListener("compositionend", () => {
    isComposing = false;
    saveLater();
  });
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[href]");
    const opensElsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0;
    if (link === null || opensElsewhere || !mayAutosave() || !isDirty()) return;
    event.preventDefault();
    await saveNow();
    location.assign(link.href); // the browser asks if it is not saved
  });
  document.addEventListener("visibilitychange", () => { if (document.hidden) saveNow(); });
  if (auto !== null) {
    auto.checked = remembered("qmd-autosave") !== "0";
    auto.addEventListener("change", () => {
      localStorage.setItem("qmd-autosave", auto.checked ? "1" : "0");
      if (auto.checked) saveLater();
    });
  }
  function say(sentence) {
    state.textContent = sentence;
  }

  // Tabs, where both panes do not fit
  const tabs = [...form.querySelectorAll('[role="tab"]')];
  function choose(tab) {
    for (const each of tabs) {
      each.setAttribute("aria-selected", each === tab);
      each.classList.toggle("on", each === tab);
      each.tabIndex = each === tab ? 0 : -1;
    }
    panes.dataset.shown = tab.id.replace("tab-", "");
  }
  for (const tab of tabs) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      const other = tabs[1 - tabs.indexOf(tab)];
      choose(other);
      other.focus();
    });
  }
  choose(tabs[0]);

  const mono = document.getElementById("mono");
  mono.checked = remembered("qmd-mono") === "1";
  area.classList.toggle("mono", mono.checked);
  mono.addEventListener("change", () => {
    area.classList.toggle("mono", mono.checked);
    localStorage.setItem("qmd-mono", mono.checked ? "1" : "0");
  });

  const line = Number(new URLSearchParams(location.search).get("line"));
  if (line > 0) {
    const lines = area.value.split("\n");
    const at = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    area.setSelectionRange(at, at);
    area.scrollTop = (line - 4) * parseFloat(getComputedStyle(area).lineHeight);
  }
  if (mayWrite) area.focus({ preventScroll: true });
  if (mayWrite && form.dataset.file) {
    takeFiles(area, async (files) => {
      for (const file of files) {
        try {
          insert(area, await attach(form.dataset.file, file, say));
        } catch (error) {
          say(error.message);
        }
      }
    });
  }
  if (saved === null) state.textContent = texts.state_unsaved;
  keysOf(area, save);
  show();
}

if (form !== null) startEditor();

if (conflict !== null) {
  let isSent = false;
  conflict.addEventListener("submit", (event) => {
    if (isSent || !["save", "choices"].includes(event.submitter?.value)) return;
    event.preventDefault();
    isSent = true;
    sendAndLeave(conflict, event.submitter, conflict.dataset.file)
      .catch(() => conflict.requestSubmit(event.submitter));
  });
  announce(document.querySelector(".notice").textContent);
}
