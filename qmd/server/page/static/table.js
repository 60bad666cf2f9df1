// A table of a note as a table: the one at the caret, or a new one. It is written back as Markdown.

import { fill, textsOf } from "./base.js";

const MOST_CELLS = 5_000; // a larger table stays text
const MOST_PADDED = 40; // a column with wider cells is not padded
const DELIMITER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const ALIGNMENTS = ["", "left", "center", "right"];

const texts = textsOf("table");

// --- Markdown ---------------------------------------------------------------------------------

/** The cells of a row; a bar is written "\|" in a cell. */
function cellsOf(line) {
  const inside = line.trim().replace(/^\|/, "").replace(/(^|[^\\])\|$/, "$1");
  return inside.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function alignmentOf(cell) {
  const [left, right] = [cell.startsWith(":"), cell.endsWith(":")];
  return left && right ? "center" : right ? "right" : left ? "left" : "";
}

/** The table that the line with the number `at` belongs to, from its first line to its last. */
function tableAt(lines, at) {
  let isCode = false;
  for (const line of lines.slice(0, at)) if (FENCE.test(line)) isCode = !isCode;
  const isRow = (line) => line !== undefined && line.includes("|");
  if (isCode || !isRow(lines[at])) return null;
  let [first, last] = [at, at];
  while (isRow(lines[first - 1])) first -= 1;
  while (isRow(lines[last + 1])) last += 1;
  if (first === last || !DELIMITER.test(lines[first + 1])) return null;
  const alignments = cellsOf(lines[first + 1]).map(alignmentOf);
  const rows = [lines[first], ...lines.slice(first + 2, last + 1)].map(cellsOf);
  const columns = Math.max(alignments.length, ...rows.map((row) => row.length));
  return { first, last, alignments: padded(alignments, columns), rows: rows.map((row) => padded(row, columns)) };
}

function padded(cells, columns) {
  return [...cells, ...new Array(columns - cells.length).fill("")];
}

/** How wide a text is in a font of equal width, where Chinese takes two places. */
function widthOf(text) {
  return [...text].reduce((sum, each) => sum + (/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]/.test(each) ? 2 : 1), 0);
}

function markdownOf({ alignments, rows }) {
  const written = rows.map((row) => row.map((cell) => cell.replace(/\s*\n\s*/g, " ").replaceAll("|", "\\|")));
  const widths = alignments.map((_, at) => {
    const width = Math.max(3, ...written.map((row) => widthOf(row[at])));
    return width > MOST_PADDED ? 3 : width;
  });
  const lineOf = (cells) => `| ${cells.join(" | ")} |`;
  const pad = (cell, at) => {
    const room = " ".repeat(Math.max(0, widths[at] - widthOf(cell)));
    return alignments[at] === "right" ? room + cell : cell + room;
  };
  const rule = alignments.map((each, at) => {
    const [left, right] = [/left|center/.test(each), /right|center/.test(each)];
    return `${left ? ":" : "-"}${"-".repeat(widths[at] - 2)}${right ? ":" : "-"}`;
  });
  const [head, ...body] = written.map((row) => lineOf(row.map(pad)));
  return [head, lineOf(rule), ...body].join("\n");
}

// --- the dialog -------------------------------------------------------------------------------

const dialog = document.getElementById("table"); // null where there is no editor
const grid = dialog?.querySelector("table");
const align = dialog?.querySelector("select");
let table = null;
let current = [0, 0]; // the row and the column of the cell that had the focus last

function cellAt(row, column) {
  return grid.querySelector(`input[data-row="${row}"][data-column="${column}"]`);
}

function show() {
  const body = document.createElement("tbody");
  table.rows.forEach((cells, row) => {
    const line = document.createElement("tr");
    cells.forEach((text, column) => {
      const cell = document.createElement(row === 0 ? "th" : "td");
      const input = document.createElement("input");
      input.value = text;
      input.dataset.row = row;
      input.dataset.column = column;
      input.autocomplete = "off";
      input.className = table.alignments[column];
      input.setAttribute("aria-label", row === 0
        ? fill(texts.head, { column: column + 1 })
        : fill(texts.cell, { row, column: table.rows[0][column] || column + 1 }));
      cell.append(input);
      line.append(cell);
    });
    body.append(line);
  });
  grid.replaceChildren(body);
}

function focus(row, column) {
  current = [
    Math.max(0, Math.min(row, table.rows.length - 1)),
    Math.max(0, Math.min(column, table.alignments.length - 1)),
  ];
  cellAt(...current).focus();
}

function change(act) {
  act();
  show();
  focus(...current);
}

const acts = {
  row() {
    table.rows.splice(current[0] + 1, 0, table.alignments.map(() => ""));
    current[0] += 1;
  },
  column() {
    table.alignments.splice(current[1] + 1, 0, "");
    for (const row of table.rows) row.splice(current[1] + 1, 0, "");
    current[1] += 1;
  },
  "remove-row"() {
    if (table.rows.length > 1 && current[0] > 0) table.rows.splice(current[0], 1);
  },
  "remove-column"() {
    if (table.alignments.length === 1) return;
    table.alignments.splice(current[1], 1);
    for (const row of table.rows) row.splice(current[1], 1);
  },
};

grid?.addEventListener("focusin", (event) => {
  current = [Number(event.target.dataset.row), Number(event.target.dataset.column)];
  align.value = table.alignments[current[1]];
});
grid?.addEventListener("input", (event) => {
  table.rows[current[0]][current[1]] = event.target.value;
});
grid?.addEventListener("keydown", (event) => {
  if (event.isComposing || event.ctrlKey || event.metaKey) return;
  const [row, column] = current;
  if (event.key === "ArrowUp") focus(row - 1, column);
  else if (event.key === "ArrowDown") focus(row + 1, column);
  else if (event.key === "Enter") {
    if (row === table.rows.length - 1) change(acts.row);
    else focus(row + 1, column);
  } else return;
  event.preventDefault();
});
align?.addEventListener("change", () => change(() => { table.alignments[current[1]] = align.value; }));
dialog?.addEventListener("click", (event) => {
  const act = acts[event.target.dataset?.act];
  if (act) change(act);
});

/**
 * Let the person edit the table at the caret of a field, or make one there. `type(start, end, words)`
 * replaces a part of the field's text, and `say` shows a sentence.
 */
export function editTable(area, type, say) {
  const lines = area.value.split("\n");
  const at = area.value.slice(0, area.selectionStart).split("\n").length - 1;
  table = tableAt(lines, at);
  const isNew = table === null;
  const caret = area.selectionStart;
  table ??= { alignments: ["", ""], rows: [["", ""], ["", ""]] };
  if (table.rows.length * table.alignments.length > MOST_CELLS) {
    say(texts.too_large);
    return;
  }
  const before = JSON.stringify(table);
  const row = isNew || at < table.first + 2 ? 0 : at - table.first - 1;
  show();
  dialog.returnValue = "";
  dialog.showModal();
  focus(row, 0);
  dialog.addEventListener("close", () => {
    area.focus();
    if (dialog.returnValue !== "take" || JSON.stringify(table) === before) return;
    const words = markdownOf(table);
    if (isNew) {
      const gap = (text) => (text === "" || text.endsWith("\n\n") ? "" : text.endsWith("\n") ? "\n" : "\n\n");
      const after = area.value.slice(caret).startsWith("\n") ? "\n" : "\n\n";
      type(caret, caret, gap(area.value.slice(0, caret)) + words + after);
      return;
    }
    const start = lines.slice(0, table.first).join("\n").length + (table.first > 0 ? 1 : 0);
    const end = lines.slice(0, table.last + 1).join("\n").length;
    type(start, end, words);
  }, { once: true });
}
