/* What the theme leaves out: names for the arrows of the contents, formulas that fit their line, and a way to reach
   boxes that scroll sideways by keyboard. */
(function () {
  "use strict";

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

  function mend() {
    document.querySelectorAll("nav details > summary").forEach((arrow) => {
      const entry = arrow.closest("li");
      const link = entry && entry.querySelector("a");
      if (!arrow.textContent.trim()) arrow.setAttribute("aria-label", `Chapters of ${link ? link.textContent.trim() : "this part"}`);
    });
    document.querySelectorAll(".bd-article table, .bd-article pre, .bd-article div.math, .bd-article .output").forEach((box) => {
      if ((box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1) && !box.hasAttribute("tabindex")) box.tabIndex = 0;
    });
    const tables = [...document.querySelectorAll(".bd-article .cell_output table")];
    if (tables.some((table) => table.scrollWidth > table.clientWidth + 1)) document.body.classList.add("broad-page");
    // The bibliography says it is a list, and its entries do not say that they are items.
    document.querySelectorAll(".citation-list[role=list]").forEach((list) => list.removeAttribute("role"));
  }

  window.addEventListener("load", () => {
    mend();
    if (window.MathJax && MathJax.startup) MathJax.startup.promise.then(fitFormulas);
  });
  window.addEventListener("resize", () => { mend(); fitFormulas(); });
  // What is folded has no width: it is fitted when it opens.
  document.addEventListener("toggle", () => { mend(); fitFormulas(); }, true);
})();
