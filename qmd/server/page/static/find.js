// Suggestions under the search box: notes by their names, tags, properties and their values.

import { part } from "./base.js";
import { offer } from "./suggest.js";

const field = document.getElementById("q");

field.setAttribute("role", "combobox");
offer(field, document.getElementById("suggestions"), {
  address() {
    if (!field.value.trim()) return null;
    return `/part/suggest?${new URLSearchParams({ q: field.value.slice(0, field.selectionStart) })}`;
  },
  take(choice) {
    if (choice.dataset.address) {
      location.assign(choice.dataset.address);
      return;
    }
    const rest = field.value.slice(field.selectionStart);
    field.value = choice.dataset.query + rest.trimStart();
    const end = choice.dataset.query.length;
    field.setSelectionRange(end, end);
    field.focus();
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  },
});

// The lists of the fields that filter are long; they come when somebody wants to filter. Only the
// view that searches has such fields.
const filters = field.form.querySelector("details.filters");
let hasWords = false;

async function loadWords() {
  if (!filters.open || hasWords) return;
  hasWords = true;
  try {
    filters.append(await part("/part/words"));
  } catch {
    hasWords = false;
  }
}

if (filters) {
  filters.addEventListener("toggle", loadWords);
  loadWords();
}
