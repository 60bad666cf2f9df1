// The trees of folders and tags: a folder that is opened loads what is in it, and the key b hides
// the tree beside a note.

import { part } from "./base.js";

async function load(details, address) {
  const list = details.querySelector("ul");
  list.setAttribute("aria-busy", "true");
  try {
    list.replaceWith(await part(address));
  } catch {
    list.removeAttribute("aria-busy"); // the link in it opens the folder as a view
  }
}

function encoded(file) {
  return file.split("/").map(encodeURIComponent).join("/");
}

// "toggle" does not bubble, but it can be caught on its way down.
document.addEventListener("toggle", (event) => {
  const details = event.target;
  if (!details.open || details.closest(".tree") === null) return;
  const { folder, address } = details.dataset;
  delete details.dataset.folder;
  delete details.dataset.address;
  if (folder !== undefined) load(details, `/part/tree/${encoded(folder)}`);
  else if (address !== undefined) load(details, address);
}, true);

// What the person looks at is in sight.
for (const current of document.querySelectorAll(".tree [aria-current]")) {
  const column = current.closest(".note-tree");
  if (column === null) continue;
  column.scrollTop += current.getBoundingClientRect().top - column.getBoundingClientRect().top - 120;
}

// The tree beside a note is shown or not, as the person left it.
const view = document.querySelector("[data-tree]");
const button = document.querySelector("[data-tree-switch]");

button?.addEventListener("click", () => {
  const isShown = view.dataset.tree === "off";
  view.dataset.tree = isShown ? "on" : "off";
  button.setAttribute("aria-expanded", String(isShown));
  const year = 365 * 24 * 3600;
  document.cookie = `qmd_tree=${view.dataset.tree}; path=/; max-age=${year}; samesite=strict`;
});
if (button) button.hidden = false;
