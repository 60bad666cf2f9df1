// The box for a thought in every view: its script and its form are loaded when it is opened, or
// when a thought waits in this browser for the server.

import { part } from "./base.js";

const opener = document.querySelector("a[data-capture]");

async function prepared() {
  let dialog = document.getElementById("capture-box");
  if (!dialog) {
    const { startCapture, boxOf } = await import("./capture.js");
    const form = await part("/part/add");
    dialog = document.getElementById("capture-box");
    if (!dialog) {
      dialog = boxOf(form, opener);
      document.body.append(dialog);
      const box = dialog;
      box.addEventListener("qmd-refused", () => box.open || box.showModal());
      startCapture(box.querySelector("#capture"));
    }
  }
  return dialog;
}

async function open() {
  const dialog = await prepared();
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("textarea").focus();
}

function isWaiting() {
  try {
    return localStorage.getItem("qmd-waiting") !== null;
  } catch {
    return false; // storage is off
  }
}

if (opener && location.pathname !== "/add" && isWaiting()) prepared().catch(() => {}); // still away

opener?.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || location.pathname === "/add") return;
  event.preventDefault();
  open().catch(() => location.assign(opener.href)); // the server or the connection is gone
});
