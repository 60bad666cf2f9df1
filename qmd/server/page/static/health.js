// The view of the state: loads the charts, and shows how jobs go on while somebody looks.

import { part } from "./base.js";

const PAUSE_MS = 1000; // between two looks at the server

async function load(place) {
  try {
    place.replaceChildren(await part(place.dataset.lazy));
  } catch {
    // The link in its place leads to the same charts.
  }
}

const live = document.getElementById("live");
let timer = 0;
let isLoading = false;

function later() {
  if (!timer && !document.hidden) timer = setTimeout(refresh, PAUSE_MS);
}

async function refresh() {
  if (isLoading) {
    timer = setTimeout(refresh, PAUSE_MS);
    return;
  }
  timer = 0;
  isLoading = true;
  try {
    const fresh = await part(live.dataset.live);
    const key = live.contains(document.activeElement) && document.activeElement.dataset.key;
    live.replaceChildren(fresh);
    if (key) live.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  } catch {
    // The next event tries again.
  } finally {
    isLoading = false;
  }
}

if (live) {
  document.addEventListener("qmd:event", later);
  document.addEventListener("visibilitychange", later);
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}
for (const place of document.querySelectorAll("[data-lazy]")) load(place);
