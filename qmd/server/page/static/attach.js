// Sends files to the server, which keeps them beside a note and says how a note links to them.

import { fill, send, textsOf } from "./base.js";

const texts = textsOf("base");
const MOST = 32 * 1024 * 1024; // bytes of a file that the server takes

/** The files of a paste or a drop; none if it is text. */
export function filesOf(transfer) {
  return transfer === null ? [] : [...transfer.files];
}

/** A name for a file; a pasted picture has none that says anything. */
function nameOf(file) {
  if (file.name && !/^image\.\w+$/.test(file.name)) return file.name;
  const moment = new Date().toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  return `${moment}.${(file.type.split("/")[1] || "bin").replace(/\W.*/, "")}`;
}

/**
 * Keep a file beside a note ("" for the inbox); returns the Markdown of a link to it. `say` is told
 * what happens.
 */
export async function attach(note, file, say) {
  const name = nameOf(file);
  say(fill(texts.uploading, { name }));
  if (file.size > MOST) throw new RangeError(fill(texts.too_large, { name, most: MOST >> 20 }));
  const path = note ? `/attach/${note.split("/").map(encodeURIComponent).join("/")}` : "/attach";
  const address = `${path}?${new URLSearchParams({ name })}`;
  const response = await send(address, { body: file, accept: "application/json" });
  return (await response.json()).link;
}

/** Put a text where the cursor of a field stands, on a line of its own if it is long. */
export function insert(field, text) {
  const before = field.value.slice(0, field.selectionStart);
  const gap = before === "" || /\s$/.test(before) ? "" : " ";
  field.setRangeText(gap + text, field.selectionStart, field.selectionEnd, "end");
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
}

/** Let files be dropped on a field and pasted into it. */
export function takeFiles(field, take) {
  field.addEventListener("paste", (event) => {
    const files = filesOf(event.clipboardData);
    if (!files.length || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    take(files);
  });
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  field.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    field.form?.classList.add("is-over");
  });
  field.addEventListener("dragleave", () => field.form?.classList.remove("is-over"));
  field.addEventListener("drop", (event) => {
    field.form?.classList.remove("is-over");
    if (!hasFiles(event)) return;
    event.preventDefault();
    take(filesOf(event.dataTransfer));
  });
}
