// The boxes of tasks in a note: a click, Space or Enter ticks one in the file.
//
// The note view loads this module, and says in <… data-tasks="FILE" data-docid="DOCID"> which note
// it shows. Only boxes that have the line of their task can be ticked.

import { announce, send, textsOf } from "./base.js";

const article = document.querySelector("[data-tasks]");
const texts = textsOf("tasks");

async function tick(box) {
  if (box.getAttribute("aria-busy") === "true") return;
  const before = box.getAttribute("aria-checked");
  const done = before !== "true";
  box.setAttribute("aria-checked", String(done)); // at once; taken back if it fails
  box.setAttribute("aria-busy", "true");
  try {
    const body = { line: box.dataset.line, docid: article.dataset.docid, done: done ? "1" : "0" };
    const answer = await send(`/tick/${address(article.dataset.tasks)}`, { body, accept: "application/json" });
    article.dataset.docid = (await answer.json()).docid;
    box.dataset.task = done ? "x" : " ";
    const item = box.closest("li[data-task]");
    if (item) item.dataset.task = box.dataset.task;
    announce(done ? texts.ticked : texts.unticked);
  } catch (error) {
    box.setAttribute("aria-checked", before);
    showProblem(error.message);
  } finally {
    box.removeAttribute("aria-busy");
  }
}

function address(file) {
  return file.split("/").map(encodeURIComponent).join("/");
}

function showProblem(message) {
  const notice = document.createElement("div");
  notice.className = "notice bad";
  notice.setAttribute("role", "alert");
  const words = document.createElement("p");
  words.textContent = `${texts.failed} ${message}`;
  notice.append(words);
  document.getElementById("main").prepend(notice);
  notice.scrollIntoView({ block: "nearest" });
}

if (article !== null) {
  for (const box of article.querySelectorAll('[role="checkbox"][data-line]')) {
    box.tabIndex = 0;
    // Its name is what follows it in the item, without the items below.
    const item = box.closest("li");
    const below = item?.querySelector("ul, ol")?.textContent ?? "";
    box.setAttribute("aria-label", (item?.textContent ?? "").replace(below, "").trim());
    box.addEventListener("click", () => tick(box));
    box.addEventListener("keydown", (event) => {
      if (event.key !== " " && event.key !== "Enter") return;
      event.preventDefault();
      tick(box);
    });
  }
}
