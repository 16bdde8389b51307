/* Two things the theme leaves out for keyboards and screen readers: names for the arrows of the contents, and a way to
   reach boxes that scroll sideways. */
(function () {
  "use strict";
  function mend() {
    document.querySelectorAll("nav details > summary").forEach((arrow) => {
      const entry = arrow.closest("li");
      const link = entry && entry.querySelector("a");
      if (!arrow.textContent.trim()) arrow.setAttribute("aria-label", `Chapters of ${link ? link.textContent.trim() : "this part"}`);
    });
    document.querySelectorAll(".bd-article table, .bd-article pre, .bd-article div.math, .bd-article .output").forEach((box) => {
      if (box.scrollWidth > box.clientWidth + 1 && !box.hasAttribute("tabindex")) box.tabIndex = 0;
    });
  }
  window.addEventListener("load", mend);
  window.addEventListener("resize", mend);
})();
