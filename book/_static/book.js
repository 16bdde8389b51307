/* What the theme leaves out: names for the arrows of the contents, a way to reach boxes that scroll sideways by keyboard,
   and long tables that can be searched and sorted. */
(function () {
  "use strict";
  const LONG = 24; // rows from which a table gets a search field

  // A formula that is a little too wide is set smaller; one that is much too wide scrolls in its own box.
  function fitFormulas() {
    document.querySelectorAll("div.math > mjx-container").forEach((box) => {
      box.dataset.size ||= parseFloat(box.style.fontSize) || 100; // MathJax matches the text around it
      box.style.fontSize = `${box.dataset.size}%`;
      const share = box.clientWidth / box.scrollWidth;
      if (share < 1) box.style.fontSize = `${box.dataset.size * Math.max(0.72, 0.98 * share)}%`;
      if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
    });
    // The theme cuts formulas in the text that are wider than their line.
    document.querySelectorAll("span.math > mjx-container").forEach((box) => {
      box.dataset.size ||= parseFloat(box.style.fontSize) || 100;
      box.style.fontSize = `${box.dataset.size}%`;
      const width = () => box.firstElementChild.getBoundingClientRect().width, span = box.parentElement;
      const room = span.parentElement.clientWidth;
      if (room && width() > room) box.style.fontSize = `${box.dataset.size * Math.max(0.75, 0.98 * room / width())}%`;
      const wide = room > 0 && width() > room;
      span.classList.toggle("too-wide", wide);
      if (wide) span.tabIndex = 0;
    });
  }

  // Printed lines that are too wide: sentences wrap with a hanging indent, columns are set a little smaller or scroll.
  function fitOutputs() {
    document.querySelectorAll(".bd-article .cell_output pre").forEach((box) => {
      box.style.fontSize = "";
      if (box.classList.contains("wrapped") || box.scrollWidth <= box.clientWidth + 1) return;
      const lines = box.textContent.replace(/\n$/, "").split("\n");
      const longest = Math.max(...lines.map((line) => line.length));
      const room = longest * box.clientWidth / box.scrollWidth;
      const endsInWords = (line) => /\S+ \S+ \S+/.test(line.split(/\s{2,}/).pop());
      if (lines.filter((line) => line.length > room).every(endsInWords)) {
        box.replaceChildren(...lines.map((line) => {
          const one = document.createElement("span");
          one.textContent = line || " ";
          return one;
        }));
        box.classList.add("wrapped");
      } else {
        box.style.fontSize = `${Math.max(0.7, 0.8 * box.clientWidth / box.scrollWidth)}rem`;
      }
    });
  }

  // Words stand at the left of their column, numbers at the right.
  function alignColumns(table) {
    const rows = [...table.rows], width = Math.max(0, ...rows.map((row) => row.cells.length));
    for (let column = 0; column < width; column += 1) {
      const cells = rows.map((row) => row.cells[column]).filter(Boolean);
      const body = cells.filter((cell) => cell.closest("tbody") && cell.textContent.trim().length > 1);
      const words = body.filter((cell) => !/\d/.test(cell.textContent) || /[a-z]{3}/i.test(cell.textContent)).length;
      if (!body.length) continue;
      const longest = Math.max(...body.map((cell) => cell.textContent.trim().length));
      const name = longest < 20 ? "names" : longest > 120 ? "paragraphs" : longest > 45 ? "sentences" : "phrases";
      cells.forEach((cell) => cell.classList.add(name));
      if (words > body.length / 2) cells.forEach((cell) => cell.classList.add("words"));
    }
  }

  function mend() {
    fitOutputs();
    document.querySelectorAll("nav details > summary").forEach((arrow) => {
      const entry = arrow.closest("li");
      const link = entry && entry.querySelector("a");
      if (!arrow.textContent.trim()) arrow.setAttribute("aria-label", `Chapters of ${link ? link.textContent.trim() : "this part"}`);
    });
    document.querySelectorAll(".bd-article table, .bd-article pre, .bd-article div.math, .bd-article .output").forEach((box) => {
      if ((box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1) && !box.hasAttribute("tabindex")) box.tabIndex = 0;
    });
    // The bibliography says it is a list, and its entries do not say that they are items.
    document.querySelectorAll(".citation-list[role=list]").forEach((list) => list.removeAttribute("role"));
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
    // A page with a table far wider than its column takes the room of the contents at its right.
    const broad = (table) => table.scrollWidth > 1.15 * table.clientWidth;
    if (window.innerWidth >= 1200 && [...document.querySelectorAll(".cell_output table")].some(broad)) document.body.classList.add("broad-page");
    mend();
    if (window.MathJax && MathJax.startup) MathJax.startup.promise.then(fitFormulas);
  });
  window.addEventListener("resize", () => { mend(); fitFormulas(); });
})();
