/* What the theme leaves out: names for the arrows of the contents, formulas that fit their line, and a way to reach boxes
   that scroll by keyboard. */
(function () {
  "use strict";

  // The room of a formula in the text is that of its paragraph; spans around it have no width of their own.
  function blockOf(node) {
    let block = node.parentElement;
    while (block.parentElement && getComputedStyle(block).display === "inline") block = block.parentElement;
    return block;
  }

  // A formula that is a little too wide is set smaller; one that is much too wide scrolls in its own box.
  function fitFormulas() {
    document.querySelectorAll(".math > mjx-container").forEach((box) => {
      if (!box.firstElementChild) return; // MathJax is not done, and this is called again when it is
      const holder = box.parentElement, inText = holder.tagName === "SPAN"; // the theme cuts formulas in the text
      const room = inText ? blockOf(holder).clientWidth : box.clientWidth;
      const width = () => (inText ? box.firstElementChild.getBoundingClientRect().width : box.scrollWidth);
      box.dataset.size ||= parseFloat(box.style.fontSize) || 100; // MathJax matches the text around it
      box.style.fontSize = `${box.dataset.size}%`;
      if (room && width() > room) box.style.fontSize = `${box.dataset.size * Math.max(0.73, 0.98 * room / width())}%`;
      const isWide = room > 0 && width() > room + 1;
      // Beside a formula that fills its line there is no room for punctuation.
      if (holder.parentElement.matches(".together")) holder.parentElement.classList.toggle("apart", room > 0 && width() > 0.9 * room);
      holder.classList.toggle("too-wide", inText && isWide);
      if (isWide) (inText ? holder : box).tabIndex = 0;
    });
  }

  // A box that scrolls takes the keyboard.
  function reach(box) {
    const scrolls = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
    if (scrolls && !box.hasAttribute("tabindex")) box.tabIndex = 0;
  }
  const BOXES = ".bd-article :is(table, pre, div.math, .output)";
  const sizes = new ResizeObserver((entries) => {
    const changed = entries.flatMap(({ target }) => [target, target.parentElement]);
    new Set(changed.filter((box) => box && box.matches(BOXES))).forEach(reach);
  });

  function prepare() {
    document.querySelectorAll("nav details > summary").forEach((arrow) => {
      const entry = arrow.closest("li");
      const link = entry && entry.querySelector("a");
      if (!arrow.textContent.trim()) arrow.setAttribute("aria-label", `Chapters of ${link ? link.textContent.trim() : "this part"}`);
    });
    document.querySelectorAll(BOXES).forEach((box) => {
      reach(box);
      // What is in a box can grow while the box keeps its size, and a box can change without the window.
      [box, ...box.children].forEach((part) => sizes.observe(part));
    });
    // The bibliography says it is a list, and its entries do not say that they are items.
    document.querySelectorAll(".citation-list[role=list]").forEach((list) => list.removeAttribute("role"));
  }

  window.addEventListener("load", () => {
    prepare();
    if (window.MathJax && MathJax.startup) MathJax.startup.promise.then(fitFormulas);
  });
  // An observer does not report what is folded, so boxes are also looked at when the window changes.
  window.addEventListener("resize", () => { document.querySelectorAll(BOXES).forEach(reach); fitFormulas(); });
  // What is folded has no width: it is fitted when it opens.
  document.addEventListener("toggle", fitFormulas, true);
})();
