// The box for a thought: keys, files, and a queue in this browser for when the server is away.

import { announce, fill, send, textsOf } from "./base.js";
import { attach, insert, takeFiles } from "./attach.js";

const DATABASE = "qmd-capture";
const STORE = "waiting";
const LOCK = "qmd-capture";
const WAITING = "qmd-waiting"; // in the storage of the browser: something waits, see quick.js

// --- the queue: what was typed without a connection ----------------------------------------

function opened() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function store(mode, work) {
  const database = await opened();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const request = work(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onerror = () => reject(transaction.error);
      transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    database.close();
  }
}

const queue = {
  all: () => store("readonly", (waiting) => waiting.getAll()),
  put: (thought) => store("readwrite", (waiting) => waiting.put(thought)),
  drop: (id) => store("readwrite", (waiting) => waiting.delete(id)),
};

// --- drafts: what was typed and is not sent stays in this browser --------------------------

const drafts = {
  read(name, from) {
    try {
      const draft = JSON.parse(localStorage.getItem(name));
      return draft?.from === from && typeof draft.text === "string" ? draft.text : "";
    } catch {
      return ""; // storage is off, or somebody else's value
    }
  },
  keep(name, from, text) {
    try {
      if (text) localStorage.setItem(name, JSON.stringify({ from, text }));
      else localStorage.removeItem(name);
    } catch {
      // storage is off or full
    }
  },
};

/**
 * Keep what is typed into a field until it is sent or cleared, in this view and in all others. What another
 * app shares has a draft of its own, which returns with the address that filled the field.
 */
function keepDraft(field) {
  const [name, from] = field.value ? ["qmd-shared", location.search] : ["qmd-thought", ""];
  field.value = drafts.read(name, from) || field.value;
  field.addEventListener("input", () => drafts.keep(name, from, field.value));
  addEventListener("storage", (event) => {
    if (event.key !== name || event.oldValue === null) return;
    // Another tab has sent or changed it: it shall not be sent twice.
    if (field.value === JSON.parse(event.oldValue).text) field.value = drafts.read(name, from);
  });
}

/** Set the text of a field as typing does. */
function fillIn(field, text) {
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Send a thought with its files; the answer of the server. Rejects without `status` if it is away. */
async function deliver(thought, say) {
  const links = [];
  for (const file of thought.files) links.push(await attach("", file, say));
  const body = new URLSearchParams({
    action: "add", id: thought.id, at: thought.at,
    text: [thought.text, ...links].filter(Boolean).join("\n"),
  });
  const response = await send("/add", { body, accept: "application/json" });
  return response.json();
}

/** Other views send what waits, too; without storage only the capture view does. */
function keepWaiting(isSo) {
  try {
    if (isSo) localStorage.setItem(WAITING, "1");
    else localStorage.removeItem(WAITING);
  } catch {
    // storage is off
  }
}

function isAway(error) {
  return error.status === undefined && !(error instanceof RangeError);
}

export function boxOf(form, opener) {
  const texts = JSON.parse(form.querySelector("#texts-capture").textContent);
  const dialog = document.createElement("dialog");
  dialog.id = "capture-box";
  dialog.setAttribute("aria-labelledby", "capture-title");
  const title = document.createElement("h2");
  title.id = "capture-title";
  title.textContent = texts.title;
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = texts.close;
  close.addEventListener("click", () => dialog.close());
  dialog.append(title, form);
  dialog.querySelector(".capture-bar").append(close);
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });
  dialog.addEventListener("close", () => opener.focus());
  return dialog;
}

export function startCapture(form) {
  const texts = textsOf("capture");
  const field = form.querySelector("textarea");
  const state = form.querySelector("#capture-state");
  const picker = form.querySelector("input[type=file]");
  let files = []; // chosen while the server was away

  function say(sentence, address = null) {
    state.textContent = sentence;
    if (address) {
      const link = document.createElement("a");
      link.href = address;
      link.textContent = decodeURI(address).replace(/^\/note\//, "");
      const [before, after = ""] = sentence.split(link.textContent);
      state.replaceChildren(before, link, after);
    }
    announce(sentence);
  }

  async function sayWaiting() {
    const waiting = await queue.all();
    keepWaiting(waiting.length > 0);
    if (waiting.length) {
      const text = waiting.length === 1 ? texts.waiting_one : texts.waiting;
      say(fill(text, { n: waiting.length }));
    }
    return waiting;
  }

  /** Send what waits, the oldest first; one tab at a time. */
  function flush() {
    return navigator.locks.request(LOCK, { ifAvailable: true }, async (lock) => {
      if (!lock) return;
      let sent = 0;
      for (const thought of (await queue.all()).sort((a, b) => (a.at < b.at ? -1 : 1))) {
        try {
          await deliver(thought, say);
        } catch (error) {
          if (isAway(error) || error.status >= 500 || error.status === 403) break;
          say(fill(texts.refused, { problem: error.message }));
          fillIn(field, [field.value, thought.text].filter(Boolean).join("\n\n"));
          form.dispatchEvent(new Event("qmd-refused", { bubbles: true }));
        }
        await queue.drop(thought.id);
        sent += 1;
      }
      const left = await sayWaiting();
      if (sent && !left.length) say(texts.sent);
    });
  }

  async function add() {
    const text = field.value.trim();
    if (!text && !files.length) return;
    const thought = { id: crypto.randomUUID(), at: new Date().toISOString(), text, files };
    say(texts.sending);
    try {
      const { said, address } = await deliver(thought, say);
      say(said, address);
    } catch (error) {
      if (!isAway(error)) {
        say(error.message);
        return;
      }
      await queue.put(thought);
      await sayWaiting();
    }
    fillIn(field, "");
    files = [];
    field.focus();
  }

  async function savePage() {
    say(texts.saving);
    const body = new URLSearchParams({ action: "save", url: form.elements.url.value });
    try {
      const { said, address } = await (await send("/add", { body, accept: "application/json" })).json();
      say(said, address);
    } catch (error) {
      say(error.message);
    }
  }

  async function take(chosen) {
    for (const file of chosen) {
      try {
        insert(field, await attach("", file, say));
        say("");
      } catch (error) {
        say(error.message);
        if (!isAway(error)) continue;
        files.push(file);
        say(file.name);
      }
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter?.value === "save") savePage();
    else add();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      add();
    }
  });
  picker.parentElement.hidden = false;
  picker.addEventListener("change", async () => {
    await take([...picker.files]);
    picker.value = "";
  });
  takeFiles(field, take);
  keepDraft(field);
  addEventListener("online", flush);
  document.addEventListener("visibilitychange", () => document.hidden || flush());
  flush();
}

const form = document.querySelector("main #capture");
if (form) {
  startCapture(form);
  form.querySelector("textarea").focus();
  navigator.serviceWorker?.register("/static/capture-worker.js", { scope: "/add" });
}
