/* What CSS cannot do for a table, because it cannot see what a cell holds: words stand at the left and numbers at the right
   of their column, and a long table can be searched and sorted. All other table styles are in book.css. */
(function () {
  "use strict";
  const LONG = 24; // rows from which a table gets a search field

  // The cells of each column as a reader sees them: a cell that spans several rows belongs to each of them.
  function columnsOf(table) {
    const columns = [], taken = {};
    [...table.rows].forEach((row, i) => {
      let column = 0;
      for (const cell of row.cells) {
        while (taken[`${i} ${column}`]) column += 1;
        if (cell.colSpan === 1) (columns[column] ||= []).push(cell);
        for (let k = 0; k < cell.rowSpan; k += 1) {
          for (let j = 0; j < cell.colSpan; j += 1) taken[`${i + k} ${column + j}`] = true;
        }
      }
    });
    return columns.filter(Boolean);
  }

  function alignColumns(table) {
    for (const cells of columnsOf(table)) {
      const body = cells.filter((cell) => cell.closest("tbody")).map((cell) => cell.textContent.trim()).filter((text) => text.length > 1);
      if (!body.length) continue;
      const words = body.filter((text) => !/\d/.test(text) || /[a-z]{3}/i.test(text)).length;
      const longest = Math.max(...body.map((text) => text.length));
      if (words > body.length / 2) cells.forEach((cell) => cell.classList.add("words"));
      if (longest < 20) cells.forEach((cell) => cell.classList.add("name"));
      else if (!table.classList.contains("fits")) cells.at(-1).style.minWidth = `${Math.min(17, 4 + longest / 12)}rem`;
    }
  }

  function compare(a, b) {
    const [x, y] = [a, b].map((text) => parseFloat(text.replace("−", "-").replace(/[,%\s]/g, "")));
    return x - y || a.localeCompare(b, "en", { numeric: true });
  }

  function makeSearchable(table) {
    const body = table.tBodies[0], head = table.tHead;
    if (!body || !head || head.rows.length !== 1 || body.rows.length < LONG) return;
    if (table.querySelector("[rowspan]:not([rowspan='1']), tbody [colspan]:not([colspan='1'])")) return; // sorting would tear merged cells apart
    const rows = [...body.rows], label = document.createElement("label");
    label.className = "table-search";
    label.innerHTML = "Search this table <input type=search><output></output>";
    const [field, count] = label.children;
    table.before(label);
    if (rows.length > 2 * LONG) table.classList.add("long-table");
    // On a phone every row is a card: book.css shows the name of its column before each cell.
    const names = [...head.rows[0].cells].map((cell) => cell.textContent.trim());
    if (names.length > 4) {
      table.classList.add("card-table");
      rows.forEach((row) => [...row.cells].forEach((cell, column) => { cell.dataset.column = names[column]; }));
    }
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

  window.addEventListener("load", () => {
    document.querySelectorAll(".bd-article .cell_output table").forEach(alignColumns);
    document.querySelectorAll(".bd-article table").forEach(makeSearchable);
  });
})();
