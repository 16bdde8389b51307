/* Tables: words at the left and numbers at the right of their column, wide ones set closer and then scrolled in their own
   box with a word that says so, long ones searched and sorted. */
(function () {
  "use strict";
  const LONG = 24; // rows from which a table gets a search field

  // The cells by row and column as a reader sees them: one that spans rows or columns stands in each of its places.
  function grid(table) {
    const rows = [...table.rows], places = rows.map(() => []);
    rows.forEach((row, i) => {
      let column = 0;
      [...row.cells].forEach((cell) => {
        while (places[i][column]) column += 1;
        for (let k = i; k < i + cell.rowSpan && rows[k] && rows[k].parentElement === row.parentElement; k += 1) {
          for (let j = 0; j < cell.colSpan; j += 1) places[k][column + j] = cell;
        }
        column += cell.colSpan;
      });
    });
    return places;
  }

  function alignColumns(table) {
    const places = grid(table), width = Math.max(0, ...places.map((row) => row.length));
    for (let column = 0; column < width; column += 1) {
      const all = [...new Set(places.map((row) => row[column]).filter(Boolean))];
      const cells = all.filter((cell) => cell.colSpan === 1);
      all.filter((cell) => cell.colSpan > 1).forEach((cell) => cell.classList.add("across"));
      if (column === 0) cells.filter((cell) => cell.tagName === "TH").forEach((cell) => cell.classList.add("stub"));
      const body = cells.filter((cell) => cell.closest("tbody") && cell.textContent.trim().length > 1);
      const words = body.filter((cell) => !/\d/.test(cell.textContent) || /[a-z]{3}/i.test(cell.textContent)).length;
      if (!body.length) continue;
      const longest = Math.max(...body.map((cell) => cell.textContent.trim().length));
      const name = longest < 20 ? "names" : longest > 120 ? "paragraphs" : longest > 45 ? "sentences" : "phrases";
      cells.forEach((cell) => cell.classList.add(name));
      if (words > body.length / 2) cells.forEach((cell) => cell.classList.add("words"));
    }
  }

  const hints = new WeakMap(); // the word above each table that has scrolled
  const isWide = (table) => table.scrollWidth > table.clientWidth + 1;

  // A table that is too wide is set closer; one that still is scrolls, and says so.
  function fitTable(table) {
    const hint = hints.get(table);
    table.classList.remove("tight", "scrolls");
    if (table.clientWidth && isWide(table)) table.classList.add("tight");
    table.classList.toggle("scrolls", table.clientWidth > 0 && isWide(table));
    if (!table.classList.contains("scrolls")) {
      if (hint) hint.hidden = true;
      return;
    }
    if (hint) {
      hint.hidden = false;
    } else {
      const word = document.createElement("div"), above = table.previousElementSibling;
      word.className = "scroll-hint";
      word.textContent = "more columns: scroll sideways →";
      (above && above.classList.contains("table-search") ? above : table).before(word);
      hints.set(table, word);
    }
    table.tabIndex = 0;
    // Names that stay in sight must leave room for what scrolls.
    const stub = table.querySelector("tbody .stub");
    table.classList.toggle("holds-names", Boolean(stub) && stub.offsetWidth < 0.4 * table.clientWidth);
    const atEnd = () => table.classList.toggle("at-end", table.scrollLeft + table.clientWidth >= table.scrollWidth - 2);
    table.onscroll = atEnd;
    atEnd();
  }

  // A page with a table of results that would have to scroll takes the room of the contents at its right.
  function takeRoom(tables) {
    const scrolls = (table) => table.closest(".cell_output") && table.classList.contains("scrolls");
    const wanted = window.innerWidth >= 1200 && tables.some(scrolls);
    if (wanted && !document.body.classList.contains("broad-page")) {
      document.body.classList.add("broad-page");
      tables.forEach(fitTable);
    }
  }

  function fitTables() {
    const tables = [...document.querySelectorAll(".bd-article table")].filter((table) => !table.closest(".explorer"));
    tables.forEach(fitTable);
    takeRoom(tables);
  }

  function number(text) {
    const value = parseFloat(text.replace("−", "-").replace(/[,%\s]/g, ""));
    return /^[-+−.\d]/.test(text.trim()) && !Number.isNaN(value) ? value : null;
  }

  function compare(a, b) {
    const x = number(a), y = number(b);
    return x !== null && y !== null ? x - y : a.localeCompare(b, "en", { numeric: true });
  }

  function searchable(table) {
    const body = table.tBodies[0], head = table.tHead;
    if (!body || !head || head.rows.length !== 1 || body.rows.length < LONG) return;
    // Merged cells would be torn apart by sorting.
    if (table.querySelector("[rowspan]:not([rowspan='1']), tbody [colspan]:not([colspan='1'])")) return;
    const rows = [...body.rows];
    const label = document.createElement("label");
    label.className = "table-search";
    label.append("Search this table ");
    const field = document.createElement("input");
    field.type = "search";
    const count = document.createElement("output");
    label.append(field, count);
    table.before(label);
    if (rows.length > 2 * LONG) table.classList.add("long-table");
    const show = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row) => {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = ` ${shown} of ${rows.length} rows`;
    };
    field.addEventListener("input", show);
    show();
    [...head.rows[0].cells].forEach((cell, column) => {
      if (!cell.textContent.trim()) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "table-sort";
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener("click", () => {
        const down = cell.getAttribute("aria-sort") === "ascending";
        [...head.rows[0].cells].forEach((other) => other.removeAttribute("aria-sort"));
        cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sign = down ? -1 : 1, text = (row) => row.cells[column].textContent.trim();
        body.append(...rows.sort((p, q) => sign * compare(text(p), text(q))));
      });
    });
  }

  window.addEventListener("load", () => {
    document.querySelectorAll(".bd-article .cell_output table").forEach(alignColumns);
    document.querySelectorAll(".bd-article table").forEach(searchable);
    fitTables();
  });
  window.addEventListener("resize", fitTables);
  document.addEventListener("toggle", fitTables, true); // what is folded has no width until it opens
})();
