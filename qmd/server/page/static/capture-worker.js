// Keeps the view that captures thoughts for when there is no connection. Nothing else is kept.

const KEPT = "qmd-capture-1";
const VIEW = "/add";
const ANY = { ignoreVary: true }; // the language and the cookie are those of this browser

self.addEventListener("install", (event) => {
  event.waitUntil(keep().catch(() => {}).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const old = caches.keys().then((names) =>
    Promise.all(names.filter((name) => name.startsWith("qmd-capture-") && name !== KEPT)
      .map((name) => caches.delete(name))));
  event.waitUntil(old.then(() => self.clients.claim()));
});

/** Keep the view as it is now, with the files that it names and those that these import. */
async function keep() {
  const cache = await caches.open(KEPT);
  const view = await fetch(VIEW);
  if (!view.ok || view.redirected) return;
  const html = await view.clone().text();
  const named = [...html.matchAll(/(?:src|href)="(\/static\/[^"]+)"/g)].map((match) => match[1]);
  const imported = ["base.js", "attach.js", "suggest.js", "capture.js"];
  const files = [...named, ...imported.map((name) => `/static/${name}`)];
  await Promise.all(files.map((file) => cache.add(file.replaceAll("&amp;", "&")).catch(() => {})));
  await cache.put(VIEW, view);
}

self.addEventListener("fetch", (event) => {
  const address = new URL(event.request.url);
  if (event.request.method !== "GET" || address.origin !== location.origin) return;
  if (event.request.mode === "navigate" && address.pathname === VIEW) {
    event.respondWith(view(event));
  } else if (address.pathname.startsWith("/static/")) {
    event.respondWith(file(event.request));
  }
});

async function view(event) {
  try {
    const response = await fetch(event.request);
    if (response.ok) event.waitUntil(keep().catch(() => {}));
    return response;
  } catch (error) {
    const kept = await caches.match(VIEW, ANY);
    if (kept) return kept;
    throw error;
  }
}

async function file(request) {
  try {
    return await fetch(request);
  } catch (error) {
    const kept = await caches.match(request, ANY);
    if (kept) return kept;
    throw error;
  }
}
