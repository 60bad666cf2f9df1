// What all views share: the token of the page, requests for parts of it, and announcements.

/** The texts of a view in the language of the page: name → text. */
export function textsOf(view) {
  const block = document.getElementById(`texts-${view}`);
  return block ? JSON.parse(block.textContent) : {};
}

const texts = textsOf("base");

/** A text with its {names} replaced. */
export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** The token without which the server takes no form. */
export function token() {
  return document.querySelector('meta[name="csrf"]').content;
}

/** Take a new token: the server was restarted, or another tab was the first to load a page. */
function renewToken(fresh) {
  document.querySelector('meta[name="csrf"]').content = fresh;
  for (const field of document.querySelectorAll('input[name="csrf"]')) field.value = fresh;
}

/** Let a screen reader say a sentence. */
export function announce(sentence) {
  document.getElementById("announce").textContent = sentence;
}

/**
 * Send a request to this server; `body` goes as a form, a file as it is. Rejects with an Error whose message can be
 * shown, or with an AbortError if `signal` was aborted.
 */
export async function send(address, { body = null, signal = null, accept = "text/html" } = {}) {
  const options = { signal, headers: { accept } };
  if (body !== null) {
    options.method = "POST";
    options.headers["x-csrf-token"] = token();
    const isFile = body instanceof Blob;
    if (isFile) options.headers["content-type"] = "application/octet-stream";
    options.body = isFile || body instanceof URLSearchParams ? body : new URLSearchParams(body);
  }
  let response;
  try {
    response = await fetch(address, options);
    const fresh = response.headers.get("x-csrf-token");
    if (fresh !== null && body !== null) {
      renewToken(fresh);
      options.headers["x-csrf-token"] = fresh;
      response = await fetch(address, options);
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error(texts.offline);
  }
  if (!response.ok) {
    throw Object.assign(new Error(await problemOf(response)), { status: response.status });
  }
  return response;
}

/** A part of the page as elements. The server has made it safe. */
export async function part(address, options = {}) {
  const response = await send(address, options);
  const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
  const fragment = document.createDocumentFragment();
  fragment.append(...parsed.body.childNodes);
  return fragment;
}

async function problemOf(response) {
  const body = await response.text();
  if (response.headers.get("content-type")?.startsWith("application/json")) {
    return JSON.parse(body).detail;
  }
  const parsed = new DOMParser().parseFromString(body, "text/html");
  return parsed.querySelector(".notice")?.textContent.trim() || `HTTP ${response.status}`;
}
