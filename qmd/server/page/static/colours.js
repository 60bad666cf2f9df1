// Colours for the Markdown in a text field. A field shows its text in one colour, so the coloured
// text lies exactly behind it, and that of the field is transparent; all else is still the field's:
// the caret, the selection, the keyboard, spelling.

const MAX_TEXT = 200_000; // characters; a longer text stays in one colour, so that keys stay quick
const MAX_LINE = 2_000; // a longer line, too

const INLINE = new RegExp(
  [
    /(?<code>`+[^`]{1,500}`+)/,
    /(?<link>!?\[\[[^\[\]]{1,300}\]\]|!?\[[^\[\]]{0,300}\]\([^()\s]{0,500}\)|https?:\/\/[^\s<>)\]]{1,500})/,
    /(?<muted>%%[^%]{1,500}%%|\*\*|~~|==)/,
    /(?<tag>(?<=^|\s)#[\p{L}\p{N}_\/-]{1,100})/,
  ].map((each) => each.source).join("|"),
  "gu",
);
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^#{1,6}\s/;
const BEFORE = /^\s*(?:(?:>\s?)+|(?:[-*+]|\d{1,9}[.)])\s+(?:\[.\]\s)?)/;
const KEY = /^\s*[\p{L}\p{N}_ -]{1,100}:(?=\s|$)/u;

/** What the next line stands in: "" for text, "yaml" for properties, else the fence of the code. */
function after(line, number, state) {
  if (state === "yaml") return /^(---|\.\.\.)\s*$/.test(line) ? "" : state;
  if (number === 0 && /^---\s*$/.test(line)) return "yaml";
  const fence = FENCE.exec(line)?.[1] ?? "";
  if (state === "") return fence;
  return fence.startsWith(state) && !line.trim().slice(fence.length) ? "" : state;
}

function span(kind, words) {
  const element = document.createElement("span");
  element.className = kind;
  element.textContent = words;
  return element;
}

/** The parts of a line, coloured. */
function* parts(line, state, next) {
  if (line.length > MAX_LINE) yield line;
  else if (state === "yaml" || next === "yaml") {
    const key = state && next ? KEY.exec(line)?.[0] ?? "" : "";
    if (key) yield span("key", key);
    const rest = line.slice(key.length);
    yield key ? rest : span("muted", rest);
  } else if (state || next) yield span("code", line);
  else if (HEADING.test(line)) yield span("heading", line);
  else {
    const before = BEFORE.exec(line)?.[0] ?? "";
    if (before) yield span("mark", before);
    let end = before.length;
    for (const match of line.slice(end).matchAll(INLINE)) {
      const start = before.length + match.index;
      if (start > end) yield line.slice(end, start);
      const [kind] = Object.entries(match.groups).find(([, words]) => words !== undefined);
      yield span(kind, match[0]);
      end = start + match[0].length;
    }
    yield line.slice(end);
  }
}

function coloured(line, state, next) {
  const row = document.createElement("div");
  row.append(...parts(line, state, next), "\n");
  return row;
}

/**
 * Colour the text of a field while it changes. Only lines that changed are coloured anew.
 *
 * Returns a function: the place of a character of the text in the window, a DOMRect, or null where
 * the text has no colours.
 */
export function colour(area) {
  const frame = document.createElement("div");
  const behind = document.createElement("pre");
  frame.className = "coloured";
  behind.setAttribute("aria-hidden", "true");
  area.replaceWith(frame);
  frame.append(behind, area);

  let rows = []; // of each line: its text, the states before and after it
  function show() {
    const isPlain = area.value.length > MAX_TEXT;
    frame.classList.toggle("plain", isPlain);
    if (isPlain) {
      rows = [];
      behind.replaceChildren();
      return;
    }
    const lines = area.value.split("\n");
    let state = "";
    const fresh = lines.map((line, number) => {
      const next = after(line, number, state);
      const row = { line, state, next };
      state = next;
      return row;
    });
    const same = (one, other) =>
      one && other && one.line === other.line && one.state === other.state && one.next === other.next;
    let first = 0;
    while (first < fresh.length && same(fresh[first], rows[first])) first++;
    let last = 0; // lines at the end that did not change
    const most = Math.min(fresh.length, rows.length) - first;
    while (last < most && same(fresh.at(-1 - last), rows.at(-1 - last))) last++;
    const removed = [...behind.children].slice(first, rows.length - last);
    const anchor = behind.children[rows.length - last] ?? null;
    for (const row of removed) row.remove();
    const added = fresh.slice(first, fresh.length - last);
    for (const { line, state, next } of added) behind.insertBefore(coloured(line, state, next), anchor);
    rows = fresh;
    follow();
  }
  function follow() {
    behind.scrollTop = area.scrollTop;
  }
  function fit() {
    behind.style.width = `${area.clientWidth}px`;
    behind.style.height = `${area.clientHeight}px`;
    follow();
  }
  area.addEventListener("input", show);
  area.addEventListener("scroll", follow, { passive: true });
  new ResizeObserver(fit).observe(area);
  show();
  fit();

  return (at) => {
    let left = at;
    for (const row of behind.children) {
      if (left >= row.textContent.length) {
        left -= row.textContent.length;
        continue;
      }
      const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const node = walker.currentNode;
        if (left > node.length) {
          left -= node.length;
          continue;
        }
        const range = document.createRange();
        range.setStart(node, left);
        range.collapse(true);
        return range.getClientRects()[0] ?? row.getBoundingClientRect();
      }
    }
    return null;
  };
}
