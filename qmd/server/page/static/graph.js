// The neighbourhood of a note on a canvas: the same notes and links as in the list below it. Drag
// moves it, a click opens a note, and a link of the list that has the focus is marked here, too.

import { textsOf } from "./base.js";

const ROUNDS = 300; // of the forces between notes; the same links give the same picture
const NEAR = 26; // pixels: how far a note keeps others away, at least
const MOST_LABELLED = 120; // characters of names that are drawn beside each other

const texts = textsOf("graph");
const { notes, links } = JSON.parse(document.getElementById("graph-data").textContent);
const frame = document.getElementById("graph");
const canvas = frame.querySelector("canvas");
const context = canvas.getContext("2d");

// --- places: each note pushes all others away, each link holds two together ---------------

const degrees = new Array(notes.length).fill(0);
for (const [from, to] of links) {
  degrees[from] += 1;
  degrees[to] += 1;
}

function layOut() {
  const near = notes.filter((each) => each.steps === 1).length || 1;
  const parents = new Map(); // of a note two steps away: the first on the way to it
  for (const [from, to] of links) {
    for (const [one, other] of [[from, to], [to, from]]) {
      if (notes[one].steps === 1 && notes[other].steps === 2 && !parents.has(other)) parents.set(other, one);
    }
  }
  const angles = notes.map((note, at) => (note.steps === 1 ? ((at - 1) / near) * 2 * Math.PI : 0));
  const places = notes.map((note, at) => {
    const angle = note.steps === 2 ? angles[parents.get(at) ?? 0] + (at % 7 - 3) * 0.12 : angles[at];
    const reach = note.steps * 130 + (note.steps === 2 ? (at % 5) * 18 : 0);
    return { x: Math.cos(angle) * reach, y: Math.sin(angle) * reach };
  });
  for (let round = 0; round < ROUNDS; round += 1) {
    const heat = 12 * (1 - round / ROUNDS) + 0.5;
    const pushes = places.map(() => ({ x: 0, y: 0 }));
    for (let one = 0; one < places.length; one += 1) {
      for (let other = one + 1; other < places.length; other += 1) {
        const x = places[one].x - places[other].x || 0.01 * (one - other);
        const y = (places[one].y - places[other].y) * 1.6; // names are wider than high
        const square = x * x + y * y + 1;
        const push = 5200 / square;
        const length = Math.sqrt(square);
        pushes[one].x += (x / length) * push * 6;
        pushes[one].y += (y / length) * push * 6;
        pushes[other].x -= (x / length) * push * 6;
        pushes[other].y -= (y / length) * push * 6;
      }
    }
    for (const [from, to] of links) {
      const x = places[to].x - places[from].x;
      const y = places[to].y - places[from].y;
      const length = Math.hypot(x, y) || 1;
      const pull = (length - 70) / (4 + Math.sqrt(Math.max(degrees[from], degrees[to])));
      pushes[from].x += (x / length) * pull;
      pushes[from].y += (y / length) * pull;
      pushes[to].x -= (x / length) * pull;
      pushes[to].y -= (y / length) * pull;
    }
    for (let at = 1; at < places.length; at += 1) { // the note itself stays in the middle
      const length = Math.hypot(pushes[at].x, pushes[at].y) || 1;
      const step = Math.min(length, heat);
      places[at].x += (pushes[at].x / length) * step - places[at].x * 0.004;
      places[at].y += (pushes[at].y / length) * step - places[at].y * 0.004;
    }
  }
  return places;
}

const places = layOut();

// --- the picture ------------------------------------------------------------------------------

let scale = { x: 1, y: 1 };
let unit = 1; // how much larger than usual letters are, on a very wide screen
const MOST_STRETCHED = 1.8; // a wide canvas is filled by a wider picture
let moved = { x: 0, y: 0 };
let marked = -1; // the note under the pointer, or whose link has the focus

function fit() {
  const [xs, ys] = [places.map((each) => each.x), places.map((each) => each.y)];
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  const high = Math.min(1.4 * unit, canvas.clientHeight / (bottom - top + 80));
  const wide = Math.min(2 * unit, canvas.clientWidth / (right - left + 160));
  scale = { x: Math.min(wide, high * MOST_STRETCHED), y: Math.min(high, wide * MOST_STRETCHED) };
  moved = { x: -scale.x * (left + right) / 2, y: -scale.y * (top + bottom) / 2 };
}

function onScreen(at) {
  return {
    x: canvas.clientWidth / 2 + moved.x + places[at].x * scale.x,
    y: canvas.clientHeight / 2 + moved.y + places[at].y * scale.y,
  };
}

function radius(at) {
  return unit * (at === 0 ? 7 : Math.min(7, 3 + Math.sqrt(degrees[at]) * 0.8));
}

function draw() {
  const style = getComputedStyle(frame);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const sharp = devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * sharp;
  canvas.height = canvas.clientHeight * sharp;
  context.setTransform(sharp, 0, 0, sharp, 0, 0);
  context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  const beside = new Set([marked]);
  for (const link of links) if (link.includes(marked)) link.forEach((each) => beside.add(each));
  const isFaint = (at) => marked >= 0 && !beside.has(at);

  context.lineWidth = 1;
  for (const [from, to] of links) {
    const [one, other] = [onScreen(from), onScreen(to)];
    const isMarked = marked >= 0 && (from === marked || to === marked);
    context.strokeStyle = colour(isMarked ? "accent" : "line");
    context.globalAlpha = marked >= 0 && !isMarked ? 0.35 : 1;
    context.beginPath();
    context.moveTo(one.x, one.y);
    context.lineTo(other.x, other.y);
    context.stroke();
  }
  notes.forEach((note, at) => {
    const { x, y } = onScreen(at);
    context.globalAlpha = isFaint(at) ? 0.35 : 1;
    context.fillStyle = colour(at === 0 ? "ink" : note.steps === 1 ? "accent" : "muted");
    context.beginPath();
    context.arc(x, y, radius(at), 0, 2 * Math.PI);
    context.fill();
  });
  drawNames(colour, isFaint);
  context.globalAlpha = 1;
}

/** Names, the most important first; one that would lie on another is left out until it is marked. */
function drawNames(colour, isFaint) {
  const order = notes.map((_, at) => at)
    .sort((one, other) => (other === marked) - (one === marked) || notes[one].steps - notes[other].steps || degrees[other] - degrees[one]);
  const taken = [];
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const at of order) {
    context.font = `${at === 0 || at === marked ? 600 : 400} ${13 * unit}px ${getComputedStyle(frame).fontFamily}`;
    const name = notes[at].name.length > 28 ? `${notes[at].name.slice(0, 27)}…` : notes[at].name;
    const place = onScreen(at);
    const width = context.measureText(name).width;
    const y = place.y;
    // A name at the edge moves inwards, as long as it touches its note.
    const room = canvas.clientWidth - width / 2 - 6;
    const inside = Math.max(width / 2 + 6, Math.min(room, place.x));
    const x = Math.max(place.x - width / 2, Math.min(place.x + width / 2, inside));
    const box = { left: x - width / 2 - 4, right: x + width / 2 + 4, top: y + radius(at) + 1, bottom: y + radius(at) + 18 * unit };
    const isFree = taken.every((other) =>
      box.left > other.right || box.right < other.left || box.top > other.bottom || box.bottom < other.top);
    if (!isFree && at !== marked) continue;
    taken.push(box);
    if (taken.length > MOST_LABELLED) break;
    context.globalAlpha = isFaint(at) ? 0.35 : 1;
    context.fillStyle = colour(notes[at].steps === 2 && at !== marked ? "muted" : "ink");
    context.fillText(name, x, box.top + 1);
  }
}

// --- pointer and list -------------------------------------------------------------------------

function noteAt(event) {
  const box = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let nearest = -1;
  let least = NEAR * NEAR;
  for (let at = 0; at < notes.length; at += 1) {
    const place = onScreen(at);
    const square = (place.x - x) ** 2 + (place.y - y) ** 2;
    if (square < least) [nearest, least] = [at, square];
  }
  return nearest;
}

function mark(at) {
  if (at === marked) return;
  marked = at;
  canvas.title = at < 0 ? "" : notes[at].file;
  canvas.classList.toggle("on-note", at >= 0);
  draw();
}

let start = null;
canvas.addEventListener("pointerdown", (event) => {
  start = { x: event.clientX, y: event.clientY, moved: { ...moved }, isDrag: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (start === null) {
    mark(noteAt(event));
    return;
  }
  const [x, y] = [event.clientX - start.x, event.clientY - start.y];
  if (Math.hypot(x, y) > 4) start.isDrag = true;
  if (!start.isDrag) return;
  moved = { x: start.moved.x + x, y: start.moved.y + y };
  draw();
});
canvas.addEventListener("pointerup", (event) => {
  const at = noteAt(event);
  if (start !== null && !start.isDrag && at >= 0) location.assign(notes[at].address);
  start = null;
});
canvas.addEventListener("pointercancel", () => { start = null; });
canvas.addEventListener("pointerleave", () => mark(-1));
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
  event.preventDefault();
  zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15);
}, { passive: false });

function zoom(factor) {
  if (scale.x * factor > 6 || scale.x * factor < 0.1) return;
  scale = { x: scale.x * factor, y: scale.y * factor };
  moved = { x: moved.x * factor, y: moved.y * factor };
  draw();
}

for (const [words, label, act] of [["+", texts.nearer, () => zoom(1.3)], ["−", texts.farther_away, () => zoom(1 / 1.3)], ["⤢", texts.whole, () => { fit(); draw(); }]]) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = words;
  button.setAttribute("aria-label", label);
  button.addEventListener("click", act);
  frame.querySelector(".graph-keys").append(button);
}

for (const link of document.querySelectorAll(".neighbours a")) {
  const at = notes.findIndex((each) => each.address === link.getAttribute("href"));
  for (const name of ["focus", "pointerenter"]) link.addEventListener(name, () => mark(at));
  for (const name of ["blur", "pointerleave"]) link.addEventListener(name, () => mark(-1));
}

frame.hidden = false;
for (const each of document.querySelectorAll("[data-without-script]")) each.hidden = true;
fit();
new ResizeObserver(() => {
  fit();
  draw();
}).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.querySelector("#graph-tag")?.addEventListener("change", (event) => event.target.form.requestSubmit());
