// The conversation: sends questions, and shows what the model and its tools do as it happens.
// The server makes all HTML: it is loaded again when something has happened. Only the words of the
// block that is being written are added here, as text.

import { announce, fill, part, send, textsOf } from "./base.js";

const texts = textsOf("ask");
const talk = document.getElementById("talk");
const log = document.getElementById("log");
const composer = document.getElementById("composer");
const trouble = document.getElementById("trouble");

const NEAR_END = 120; // pixels from the end within which the page follows the newest text
const PAUSES_MS = [300, 900, 2000]; // before the server is tried again
const POLL_MS = 3000;

const state = { chat: talk.dataset.chat, reader: null, listing: null, turn: null, following: true, asksNext: false };

// --- what is said by the server ------------------------------------------------------------

/** The events of a response, as many at once as have come: [{ kind, data }]. */
async function* events(response, signal) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  signal.addEventListener("abort", () => reader.cancel(), { once: true });
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting += value;
    const blocks = waiting.split("\n\n");
    waiting = blocks.pop();
    const batch = [];
    for (const block of blocks) {
      const [, kind, data] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
      if (kind) batch.push({ kind, data: JSON.parse(data) });
    }
    if (batch.length) yield batch;
  }
}

/** The turn that is being answered: its element, and the words of the present round. */
class Turn {
  constructor(element) {
    this.element = element;
    this.rounds = 0;
    this.words = "";
    this.began = Date.now() - 1000 * (element.querySelector(".progress")?.dataset.seconds || 0);
    this.tick = setInterval(() => this.count(), 1000);
    this.count();
  }

  get steps() { return this.element.querySelector(".steps"); }

  count() {
    const since = this.element.querySelector(".since");
    if (!since) return;
    const seconds = Math.floor((Date.now() - this.began) / 1000);
    const parts = [fill(texts.seconds, { n: seconds })];
    if (this.rounds > 1) parts.unshift(fill(texts.round, { n: this.rounds }));
    since.textContent = parts.join(" · ");
  }

  doing(words) {
    const doing = this.element.querySelector(".doing");
    if (doing && doing.textContent !== words) doing.textContent = words;
  }

  /** The step of the words of the present round, as the server has rendered it; if any. */
  get live() {
    return [...this.steps.querySelectorAll(`[data-round="${this.rounds}"]`)].at(-1);
  }

  /** The words of the present round that are not rendered yet. */
  get rest() { return this.words.slice(this.live?.dataset.shown ?? 0); }

  write(text) {
    this.words += text;
    if (!this.live) {
      if (!this.words.trim()) return;
      const step = document.createElement("li");
      step.className = "step words content";
      step.dataset.round = this.rounds;
      step.dataset.shown = 0;
      this.steps.append(step);
    }
    this.showRest();
  }

  showRest() {
    const rest = this.rest.trimStart();
    if (!this.live || !rest) return;
    let tail = this.live.querySelector(".tail");
    if (!tail) {
      tail = document.createElement("div");
      tail.className = "tail";
      this.live.append(tail);
    }
    if (rest.length > tail.textContent.length) tail.textContent = rest;
  }

  /** Take the steps as the server renders them; those that are as before stay as they are. */
  take(article) {
    const old = [...this.steps.children];
    const fresh = [...article.querySelector(".steps").children];
    for (const [place, step] of fresh.entries()) {
      step.source = step.outerHTML;
      if (old[place]?.source === step.source) continue;
      if (old[place]) old[place].replaceWith(step);
      else this.steps.append(step);
      dress(step);
    }
    for (const step of old.slice(fresh.length)) step.remove();
    this.showRest();
  }

  end() { clearInterval(this.tick); }
}

/** What the events change at once; then the turn is loaded. */
const kinds = {
  asking(turn) {
    turn.rounds += 1;
    turn.words = "";
    turn.doing(texts.thinking);
    turn.count();
  },
  text(turn, data) {
    turn.write(data.text);
    turn.doing(texts.writing);
  },
  discard(turn) {
    turn.words = "";
    turn.live?.remove();
    turn.doing(texts.retrying);
  },
  tool_started(turn, data) { turn.doing(fill(texts.works, { tool: data.tool })); },
  question(turn) { turn.doing(texts.waits); },
};

/** Show the turn that is answered as it stands now. */
async function refresh() {
  const article = (await part(`/part/ask/${state.chat}/turn`)).firstElementChild;
  document.getElementById("welcome")?.remove();
  const old = document.getElementById(article.id);
  if (!article.hasAttribute("aria-busy")) end(article, old);
  else if (state.turn?.element === old && old) state.turn.take(article);
  else begin(article, old);
}

function place(article, old) {
  if (old) old.replaceWith(article);
  else log.append(article);
  dress(article);
}

function begin(article, old) {
  for (const step of article.querySelector(".steps").children) step.source = step.outerHTML;
  place(article, old);
  state.turn?.end();
  state.turn = new Turn(article);
}

function end(article, old) {
  const focusIsInside = old?.contains(document.activeElement);
  const wasRunning = old?.hasAttribute("aria-busy") ?? true;
  place(article, old);
  state.turn?.end();
  state.turn = null;
  if (!wasRunning) return;
  document.getElementById("question").placeholder = texts.placeholder_more;
  announce(article.dataset.status === "done" ? texts.end_done : texts.end_other);
  if (focusIsInside) document.getElementById("question")?.focus({ preventScroll: true });
}

/** Lead the person to the change that waits for an answer. */
function showQuestion() {
  const card = log.querySelector(".question.open");
  if (!card) return;
  state.following = false; // the end of a long change is not what is to be read first
  card.scrollIntoView({ block: card.offsetHeight > innerHeight / 2 ? "start" : "nearest" });
  card.querySelector("h3").focus({ preventScroll: true });
  announce(texts.asks);
}

/** Show the events of a response; returns whether the turn has ended. */
async function follow(response) {
  state.reader?.abort();
  const reader = (state.reader = new AbortController());
  let ended = false;
  state.turn?.end();
  state.turn = null;
  for await (const batch of events(response, reader.signal)) {
    if (batch[0].kind === "idle") {
      await loadTurns();
      while (isAnswering()) {
        // Another process runs the turn, and keeps it when it has ended.
        await pause(POLL_MS);
        await loadTurns();
      }
      return true;
    }
    if (!state.turn) await refresh();
    for (const { kind, data } of batch) if (state.turn) kinds[kind]?.(state.turn, data);
    const happened = batch.some(({ kind }) => kind !== "text");
    if (happened || state.turn?.rest.includes("\n\n")) await refresh();
    if (batch.some(({ kind }) => kind === "question")) showQuestion();
    ended ||= batch.at(-1).kind === "ended";
    keepUp();
  }
  if (ended) refreshList();
  return ended || reader.signal.aborted;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Follow the answer that the server is writing, as long as the server can be reached. */
async function connect() {
  setRunning(true);
  for (const pauseMs of [...PAUSES_MS, null]) {
    try {
      const response = await send(`/ask/${state.chat}/events`, { accept: "text/event-stream" });
      trouble.replaceChildren();
      if (await follow(response)) return setRunning(false);
    } catch (error) {
      if (error.status === 404) return location.assign("/ask"); // deleted meanwhile
      // Tried again below, or reported.
    }
    if (pauseMs !== null) await pause(pauseMs);
  }
  state.turn?.end();
  complain(texts.lost, [texts.reconnect, reload]);
  setRunning(false);
}

/** Send a form that lets the model answer, and show the answer. */
async function run(address, body) {
  setRunning(true);
  let turn;
  try {
    turn = await (await send(address, { body, accept: "application/json" })).json();
  } catch (error) {
    setRunning(false);
    throw error;
  }
  trouble.replaceChildren();
  setChat(turn);
  await connect();
}

// --- what the person sees of it ------------------------------------------------------------

function complain(message, [label, action] = []) {
  const notice = document.createElement("div");
  notice.className = "notice bad";
  const words = document.createElement("p");
  words.textContent = message;
  notice.append(words);
  if (label) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", action);
    notice.append(button);
  }
  trouble.replaceChildren(notice);
}

function setRunning(running) {
  talk.toggleAttribute("data-running", running);
  if (!composer) return;
  const stop = document.getElementById("stop");
  const send_ = document.getElementById("send");
  const hadFocus = [stop, send_].includes(document.activeElement);
  stop.hidden = !running;
  send_.hidden = running;
  if (hadFocus) document.getElementById("question").focus();
  if (!running && state.asksNext) {
    state.asksNext = false;
    setTimeout(ask); // after the turn that ends has been shown
  }
}

function setChat({ chat, name, export_path: exportPath }) {
  if (chat === state.chat) return;
  state.chat = chat;
  talk.dataset.chat = chat;
  composer.elements.chat.value = chat;
  for (const form of document.querySelectorAll("[data-of-chat]")) {
    form.setAttribute("action", form.getAttribute("action").replace(/^\/ask\/[^/]*/, `/ask/${chat}`));
  }
  document.querySelector(".menu").hidden = false;
  document.getElementById("name").value = name;
  const path = document.getElementById("path");
  if (path) path.value = exportPath;
  document.querySelector("h1").textContent = name;
  document.title = `${name} · ${texts.title} · qmd`;
  history.replaceState(null, "", `/ask/${chat}`);
  refreshList();
}

async function refreshList() {
  state.listing?.abort(); // an answer to it could come after the newer one
  const request = (state.listing = new AbortController());
  const find = document.getElementById("find")?.value ?? "";
  const query = new URLSearchParams({ find, current: state.chat });
  try {
    document.querySelector(".conversations .list").replaceChildren(await part(`/part/ask/list?${query}`, request));
  } catch {
    // The list stays as it is; the next change loads it again.
  }
}

async function loadTurns() {
  log.replaceChildren(await part(`/part/ask/${state.chat}/turns`));
  document.getElementById("welcome")?.remove();
  dress(log);
}

async function reload() {
  trouble.replaceChildren();
  try {
    await loadTurns();
    if (isAnswering()) await connect();
  } catch (error) {
    complain(error.message, [texts.reconnect, reload]);
  }
}

const isAnswering = () => log.querySelector('[aria-busy="true"]') !== null;

/** Give an element what only scripts can do. */
function dress(root) {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
  const open = ".question.open";
  for (const card of [root, ...root.querySelectorAll(open)]) if (card.matches?.(open)) countDown(card);
}

function countDown(card) {
  const left = card.querySelector(".left");
  if (!left) return;
  const end = Date.now() + 1000 * left.dataset.seconds;
  const tick = () => {
    const seconds = Math.max(0, Math.round((end - Date.now()) / 1000));
    left.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    if (!card.isConnected || seconds === 0) clearInterval(timer);
  };
  const timer = setInterval(tick, 1000);
  tick();
}

// The page follows the newest text, until the person scrolls up.

const distance = () => document.documentElement.scrollHeight - scrollY - innerHeight;

function keepUp() {
  if (state.following) scrollTo({ top: document.documentElement.scrollHeight });
  const newest = document.getElementById("newest");
  if (newest) newest.hidden = state.following || !talk.hasAttribute("data-running");
}

let lastY = scrollY;
addEventListener("scroll", () => {
  if (scrollY < lastY - 2 && distance() > NEAR_END) state.following = false;
  else if (distance() <= NEAR_END) state.following = true;
  lastY = scrollY;
  const newest = document.getElementById("newest");
  if (newest && state.following) newest.hidden = true;
}, { passive: true });

// --- what the person does ------------------------------------------------------------------

async function ask() {
  const question = document.getElementById("question");
  const text = question.value.trim();
  if (!text) return;
  if (talk.hasAttribute("data-running")) {
    state.asksNext = true; // sent when the answer is complete, unless it is typed on
    return;
  }
  const body = new URLSearchParams(new FormData(composer));
  question.value = "";
  grow();
  state.following = true;
  announce(texts.began);
  try {
    await run("/ask/send", body);
  } catch (error) {
    if (!question.value) question.value = text;
    grow();
    complain(error.message);
    question.focus();
  }
}

function stop() {
  state.asksNext = false;
  if (!talk.hasAttribute("data-running") || !state.chat) return;
  send(`/ask/${state.chat}/stop`, { body: {}, accept: "application/json" })
    .catch((error) => complain(error.message));
}

function grow() {
  const question = document.getElementById("question");
  if (CSS.supports("field-sizing", "content")) return;
  question.rows = Math.min(12, question.value.split("\n").length);
}

composer?.addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
document.getElementById("stopping")?.addEventListener("submit", (event) => {
  event.preventDefault();
  stop();
});
document.getElementById("question")?.addEventListener("keydown", (event) => {
  // While an input method composes, Enter chooses a word; Safari says so by the code 229 only.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  ask();
});
document.getElementById("question")?.addEventListener("input", () => {
  state.asksNext = false;
  grow();
});
document.getElementById("newest")?.addEventListener("click", () => {
  state.following = true;
  keepUp();
});

addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || event.defaultPrevented) return;
  const menu = document.querySelector(".menu[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  } else if (!document.querySelector(":popover-open, dialog[open]")) {
    stop();
  }
});
addEventListener("click", (event) => {
  const menu = document.querySelector(".menu[open]");
  if (menu && !menu.contains(event.target)) menu.open = false;
});

log.addEventListener("submit", async (event) => {
  const form = event.target;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  try {
    if ("retry" in form.dataset) await run(form.getAttribute("action"), body);
    else await answer(form, body);
  } catch (error) {
    complain(error.message);
  }
});

async function answer(form, body) {
  state.following = true;
  for (const button of form.querySelectorAll("button")) button.disabled = true;
  try {
    await send(form.getAttribute("action"), { body, accept: "application/json" });
    document.getElementById("question")?.focus({ preventScroll: true });
  } catch (error) {
    for (const button of form.querySelectorAll("button")) button.disabled = false;
    throw error;
  }
}

log.addEventListener("click", async (event) => {
  const all = event.target.closest("[data-all]");
  if (all) {
    event.preventDefault();
    await showAll(all);
  }
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await copy(button.dataset.copy);
  const label = button.textContent;
  button.textContent = texts.copied;
  announce(texts.copied);
  setTimeout(() => { button.textContent = label; }, 2000);
});

/** Show the whole change of a question whose beginning is shown. */
async function showAll(link) {
  const card = link.closest(".question");
  try {
    const whole = await part(link.getAttribute("href"));
    const diff = whole.firstElementChild;
    card.querySelector(".diff").replaceWith(diff);
    link.closest(".rest").remove();
    diff.focus();
  } catch (error) {
    complain(error.message);
  }
}

/** The clipboard's interface exists on this machine and under https only; else a field helps. */
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

// The quote of a citation is shown while the pointer or the focus is on it.

let popup = null;

function showQuote(cite) {
  hideQuote();
  const source = document.getElementById(cite.dataset.source);
  if (!source) return;
  popup = document.createElement("div");
  popup.className = "quote-popup";
  popup.append(...[...source.childNodes].map((node) => node.cloneNode(true)));
  for (const link of popup.querySelectorAll("a")) {
    const name = document.createElement("strong");
    name.textContent = link.textContent;
    link.replaceWith(name);
  }
  popup.setAttribute("aria-hidden", "true");
  document.body.append(popup);
  const box = cite.getBoundingClientRect();
  const { offsetWidth, offsetHeight } = popup;
  const left = Math.min(Math.max(8, box.left), innerWidth - offsetWidth - 8);
  const above = box.top - offsetHeight - 6;
  popup.style.left = `${left + scrollX}px`;
  popup.style.top = `${(above > 8 ? above : box.bottom + 6) + scrollY}px`;
}

function hideQuote() {
  popup?.remove();
  popup = null;
}

for (const kind of ["mouseover", "focusin"]) {
  log.addEventListener(kind, (event) => {
    const cite = event.target.closest("a.cite");
    if (cite) showQuote(cite);
  });
}
for (const kind of ["mouseout", "focusout"]) {
  log.addEventListener(kind, (event) => {
    if (event.target.closest("a.cite")) hideQuote();
  });
}

// --- the list of conversations -------------------------------------------------------------

let typing = 0;
document.querySelector("[data-find]")?.addEventListener("submit", (event) => {
  event.preventDefault();
  refreshList();
});
document.getElementById("find")?.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(refreshList, 120);
});

for (const chip of document.querySelectorAll("#examples .chip")) {
  chip.addEventListener("click", () => {
    const question = document.getElementById("question");
    question.value = chip.textContent;
    question.focus();
  });
}
document.getElementById("examples")?.removeAttribute("hidden");

// Sentences without a source are marked if the person wants it; the browser remembers that.

const STRICT = "qmd-strict";
const strict = document.getElementById("strict");
if (strict) {
  const box = strict.querySelector("input");
  strict.hidden = false;
  box.checked = localStorage.getItem(STRICT) === "on";
  const apply = () => talk.toggleAttribute("data-strict", box.checked);
  box.addEventListener("change", () => {
    localStorage.setItem(STRICT, box.checked ? "on" : "off");
    apply();
  });
  apply();
}

// Another tab may have gone on with this conversation.
document.addEventListener("visibilitychange", async () => {
  const isIdle = !talk.hasAttribute("data-running") && state.chat;
  if (document.visibilityState !== "visible" || !isIdle) return;
  const turns = await part(`/part/ask/${state.chat}/turns`).catch(() => null);
  const last = turns?.lastElementChild;
  const isSame = last?.id === log.lastElementChild?.id &&
    last?.dataset.status === log.lastElementChild?.dataset.status;
  if (turns && !isSame && !talk.hasAttribute("data-running")) await reload();
});

dress(document);
if (isAnswering()) {
  connect();
} else {
  document.getElementById("question")?.focus({ preventScroll: true });
}
if (log.childElementCount) scrollTo({ top: document.documentElement.scrollHeight });
