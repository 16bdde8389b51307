/* What CSS cannot do for a table, because it cannot see what a cell holds: words stand at the left and numbers at the right
   of their column, and a long table can be searched and sorted. All other table styles are in book.css. */
(function () {
  "use strict";
  const LONG = 24; // rows from which a table gets a search field
  const TEXT = 32; // characters of a cell from which a table holds text

  function alignColumns(table) {
    for (const column of [...table.rows[0].cells].keys()) {
      const cells = [...table.rows].map((row) => row.cells[column]).filter(Boolean);
      const body = cells.filter((cell) => cell.closest("tbody")).map((cell) => cell.textContent.trim()).filter((text) => text.length > 1);
      if (!body.length) continue;
      const words = body.filter((text) => !/\d/.test(text) || /[a-z]{3}/i.test(text)).length;
      const longest = Math.max(...body.map((text) => text.length));
      if (words > body.length / 2) cells.forEach((cell) => cell.classList.add("words"));
      if (longest < 20) cells.forEach((cell) => cell.classList.add("name"));
      else if (!table.classList.contains("fits")) cells.at(-1).style.setProperty("--room", `${Math.min(17, 4 + longest / 12)}rem`);
    }
  }

  function compare(a, b) {
    const [x, y] = [a, b].map((text) => parseFloat(text.replace("−", "-").replace(/[,%\s]/g, "")));
    return x - y || a.localeCompare(b, "en", { numeric: true });
  }

  const isPlain = (table) => table.tBodies.length === 1 && table.tHead?.rows.length === 1;

  // On a phone the rows of a table with much text can be cards: book.css shows the name of its column before each cell.
  function nameCells(table) {
    const names = [...(table.tHead?.rows[0].cells ?? [])].map((cell) => cell.textContent.trim());
    const rows = [...(table.tBodies[0]?.rows ?? [])];
    const holdsText = rows.some((row) => [...row.cells].some((cell) => cell.textContent.trim().length >= TEXT));
    if (!isPlain(table) || !(holdsText || (rows.length >= LONG && names.length > 4))) return;
    table.classList.add("can-be-cards");
    rows.forEach((row) => [...row.cells].forEach((cell, column) => { cell.dataset.column = names[column]; }));
  }

  function makeSearchable(table) {
    const body = table.tBodies[0], head = table.tHead;
    if (!isPlain(table) || body.rows.length < LONG) return;
    const rows = [...body.rows], label = document.createElement("label");
    label.className = "table-search";
    label.innerHTML = "Search this table <input type=search><output></output>";
    const [field, count] = label.children;
    table.before(label);
    if (rows.length > 2 * LONG) table.classList.add("long-table");
    field.oninput = () => {
      const words = field.value.toLowerCase().split(/\s+/);
      rows.forEach((row) => { row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word)); });
      count.textContent = ` ${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
    };
    field.oninput();
    [...head.rows[0].cells].forEach((cell, column) => {
      if (!cell.textContent.trim()) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "table-sort";
      button.append(...cell.childNodes);
      cell.append(button);
      button.onclick = () => {
        const down = cell.ariaSort === "ascending", sign = down ? -1 : 1;
        for (const other of head.rows[0].cells) other.removeAttribute("aria-sort");
        cell.ariaSort = down ? "descending" : "ascending";
        const text = (row) => row.cells[column].textContent.trim();
        body.append(...rows.sort((p, q) => sign * compare(text(p), text(q))));
      };
    });
  }

  // A table that is a little too wide is set smaller, and on a phone it becomes cards if it can. All others scroll.
  const phone = window.matchMedia("(max-width: 600px)");
  function fit(table) {
    const isWide = () => table.scrollWidth > table.clientWidth + 1;
    table.classList.remove("tight", "tighter", "card-table");
    if (phone.matches && table.matches(".can-be-cards") && isWide()) table.classList.add("card-table");
    for (const size of ["tight", "tighter"]) if (isWide()) table.classList.add(size);
    if (isWide()) table.classList.remove("tight", "tighter");
  }
  const fitTables = () => document.querySelectorAll(".bd-article table:not(.explorer table)").forEach(fit);

  window.addEventListener("load", () => {
    document.querySelectorAll(".bd-article .cell_output table").forEach(alignColumns);
    document.querySelectorAll(".bd-article table:not(.explorer table)").forEach(nameCells);
    document.querySelectorAll(".bd-article table").forEach(makeSearchable);
    fitTables();
  });
  window.addEventListener("resize", fitTables);
  document.addEventListener("toggle", fitTables, true); // what is folded has no width
})();
