// The bar that shows what is being indexed or embedded, and the events of the index for all views.
//
// Each event of the server is passed on as "qmd:event" of the document, with its `kind` in `detail`.
// So a page has one stream, and only as long as somebody sees it: a browser keeps at most six
// connections to a server of HTTP/1.1.

import { part } from "./base.js";

const PAUSE_MS = 1000; // between two looks at work that goes on
const SHORTEST_RETRY_MS = 2000;
const LONGEST_RETRY_MS = 60000;
const KINDS = ["added", "updated", "moved", "removed", "indexing", "embedding", "synced", "problem", "missed"];
const WORK = ["indexing", "embedding", "missed"]; // the events that may begin it

const bar = document.getElementById("activity");
let stream = null;
let timer = 0;
let retry = 0;
let retryMs = SHORTEST_RETRY_MS;
let wasBusy = false;

function later() {
  if (!timer && !document.hidden) timer = setTimeout(look, PAUSE_MS);
}

/** Show the work that goes on. What ends within a pause is not shown: it would only flicker. */
async function look() {
  let isBusy = false;
  try {
    const work = await part("/part/live");
    isBusy = work.querySelector(".work") !== null;
    bar.replaceChildren(work);
  } catch {
    // The next event tries again.
  }
  timer = 0;
  bar.hidden = !(isBusy && wasBusy);
  wasBusy = isBusy;
  if (isBusy) later();
}

function pass(kind) {
  document.dispatchEvent(new CustomEvent("qmd:event", { detail: { kind } }));
}

function connect() {
  if (stream || document.hidden) return;
  clearTimeout(retry);
  stream = new EventSource("/events");
  for (const kind of KINDS) {
    stream.addEventListener(kind, () => {
      pass(kind);
      if (WORK.includes(kind)) later();
    });
  }
  stream.addEventListener("open", () => {
    retryMs = SHORTEST_RETRY_MS;
    pass("connected"); // events before it are lost
    look();
  });
  stream.addEventListener("error", () => {
    disconnect();
    retry = setTimeout(connect, retryMs);
    retryMs = Math.min(2 * retryMs, LONGEST_RETRY_MS);
  });
}

function disconnect() {
  stream?.close();
  stream = null;
  clearTimeout(retry);
  clearTimeout(timer);
  timer = 0;
}

document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);
