// A list of choices for what is being typed: a combobox as WAI-ARIA's practices describe it. The
// focus stays in the field.

import { announce, fill, part, textsOf } from "./base.js";

const TYPING_MS = 80; // from the last key to the request

/**
 * Offer choices in `list` while the person types in `field`.
 *
 * `address(field)` names the part of the page with the choices for what is typed, or is null where
 * there is nothing to offer. `take(choice)` carries out a choice, and `place()` moves the list. The
 * first choice is selected at once if `selectsFirst()`. `local()` returns choices that need no
 * request; they come first.
 */
export function offer(
  field, list, { address, take, place = () => {}, local = () => [], selectsFirst = () => false },
) {
  const texts = textsOf("suggest");
  let running = null; // the AbortController of the newest request
  let timer = 0;

  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  const isCombobox = field.getAttribute("role") === "combobox"; // a text of several lines is none
  const expand = (isOpen) => { if (isCombobox) field.setAttribute("aria-expanded", String(isOpen)); };
  expand(false);

  const selected = () => list.querySelector('[aria-selected="true"]');

  function select(choice) {
    selected()?.setAttribute("aria-selected", "false");
    if (!choice) {
      field.removeAttribute("aria-activedescendant");
      return;
    }
    choice.setAttribute("aria-selected", "true");
    choice.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", choice.id);
  }

  function close() {
    clearTimeout(timer);
    running?.abort();
    select(null);
    list.hidden = true;
    expand(false);
  }

  function choose(choice, event) {
    close();
    take(choice, event);
  }

  async function show(source) {
    running?.abort();
    const request = (running = new AbortController());
    let fresh;
    try {
      fresh = await part(source, { signal: request.signal });
    } catch {
      return; // other parts of the page say what is wrong
    }
    if (running !== request || request.signal.aborted || document.activeElement !== field) return;
    const own = local();
    const known = own.map((each) => each.dataset.address).filter(Boolean);
    const others = [...fresh.children].filter((each) => !known.includes(each.dataset.address));
    showChoices([...own, ...others]);
    announceCount();
  }

  function showChoices(choices) {
    select(null);
    list.replaceChildren(...choices);
    const count = list.childElementCount;
    list.hidden = count === 0;
    expand(count > 0);
    if (!count) return;
    place();
    if (selectsFirst()) select(list.firstElementChild);
  }

  function announceCount() {
    const count = list.childElementCount;
    if (count) announce(fill(count === 1 ? texts.count_one : texts.count, { n: count }));
  }

  function later() {
    clearTimeout(timer);
    const source = address(field);
    const choices = local();
    if (source === null && !choices.length) {
      close();
      return;
    }
    running?.abort();
    if (choices.length && (source === null || list.hidden)) showChoices(choices);
    if (source !== null) timer = setTimeout(() => show(source), TYPING_MS);
  }

  /** Returns whether the key did something with the list. */
  function press(event) {
    const { key } = event;
    const all = [...list.children];
    const at = all.indexOf(selected());
    if (key === "ArrowDown" && at < all.length - 1) select(all[at + 1]);
    else if (key === "ArrowUp" && at >= 0) select(all[at - 1] ?? (selectsFirst() ? all[0] : null));
    else if (key === "Enter" && at >= 0) choose(all[at], event);
    else if (key === "Escape") close();
    else return false;
    return true;
  }

  field.addEventListener("input", (event) => {
    if (!event.isComposing) later();
  });
  field.addEventListener("compositionend", later);
  field.addEventListener("blur", close);
  field.form.addEventListener("submit", close);
  // Before the other listeners of the field: a key that the list takes does nothing else.
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (list.hidden) {
      if (event.key === "Enter") close(); // a request may be under way
      return;
    }
    if (press(event)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else if (event.key === "ArrowDown" && !selectsFirst()) close(); // after the last one the hits follow
  });
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (event) => {
    const choice = event.target.closest("[role=option]");
    if (choice) choose(choice, event);
  });
}
