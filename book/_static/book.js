/* What the theme leaves out: names for the arrows of the contents, a way to reach boxes that scroll sideways by keyboard,
   and long tables that can be searched and sorted. */
(function () {
  "use strict";
  const LONG = 24; // rows from which a table gets a search field

  function mend() {
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
    document.querySelectorAll(".bd-article table").forEach(searchable);
    mend();
  });
  window.addEventListener("resize", mend);
})();
