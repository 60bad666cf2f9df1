// The box for a thought in every view: its script and its form are loaded when it is opened.

import { part } from "./base.js";

const opener = document.querySelector("a[data-capture]");

async function open() {
  let dialog = document.getElementById("capture-box");
  if (!dialog) {
    const { startCapture, boxOf } = await import("./capture.js");
    const form = await part("/part/add");
    dialog = document.getElementById("capture-box");
    if (!dialog) {
      dialog = boxOf(form, opener);
      document.body.append(dialog);
      startCapture(dialog.querySelector("#capture"));
    }
  }
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("textarea").focus();
}

opener?.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || location.pathname === "/add") return;
  event.preventDefault();
  open().catch(() => location.assign(opener.href)); // the server or the connection is gone
});
