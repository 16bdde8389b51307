/* Lines of code and of printed output that are longer than their box wrap softly, each below its own indentation. Every
   line keeps its newline, so that what is copied is what was written. */
(function () {
  "use strict";
  const HANG = 4, DEEPEST = 12; // characters: extra indentation of a continued line, and the most it is indented by

  // Give each line of a listing a block of its own; null where the listing is built in another way than by Pygments.
  function linesOf(pre) {
    const lines = [document.createElement("span")];
    for (const node of [...pre.childNodes]) {
      const text = node.textContent, isElement = node.nodeType === Node.ELEMENT_NODE;
      if (isElement && node.firstElementChild && text.includes("\n")) return null;
      text.split(/(?<=\n)/).forEach((part, i, parts) => {
        const whole = parts.length === 1;
        if (isElement) {
          const piece = whole ? node.cloneNode(true) : node.cloneNode(false);
          if (!whole) piece.textContent = part;
          lines.at(-1).append(piece);
        } else {
          lines.at(-1).append(part);
        }
        if (part.endsWith("\n")) lines.push(document.createElement("span"));
      });
    }
    if (!lines.at(-1).textContent) {
      const rest = lines.pop();
      if (lines.length) lines.at(-1).append(...rest.childNodes);
    }
    return lines;
  }

  function wrap(pre) {
    if (pre.classList.contains("wrapped")) return;
    const lines = linesOf(pre);
    if (!lines) return;
    lines.forEach((line) => {
      const hang = Math.min(line.textContent.match(/^ */)[0].length, DEEPEST) + HANG;
      line.className = "line";
      line.style.setProperty("--hang", `${hang}ch`);
    });
    pre.replaceChildren(...lines);
    pre.classList.add("wrapped");
  }

  // Printed columns are set a little smaller or scroll; everything else that is too wide wraps.
  function fitOutput(box) {
    if (box.classList.contains("wrapped")) return;
    box.style.fontSize = "";
    if (box.scrollWidth <= box.clientWidth + 1) return;
    const lines = box.textContent.replace(/\n$/, "").split("\n");
    const longest = Math.max(...lines.map((line) => line.length));
    const room = longest * box.clientWidth / box.scrollWidth;
    const hasColumns = (line) => (line.match(/\S\s{2,}(?=\S)/g) || []).length > 1;
    const endsInWords = (line) => /\S+ \S+ \S+/.test(line.split(/\s{2,}/).pop());
    if (lines.filter((line) => line.length > room).some((line) => hasColumns(line) && !endsInWords(line))) {
      box.style.fontSize = `${Math.max(0.68, 0.79 * box.clientWidth / box.scrollWidth)}rem`;
    } else {
      wrap(box);
    }
  }

  const fitOutputs = () => document.querySelectorAll(".bd-article .cell_output pre").forEach(fitOutput);

  window.addEventListener("load", () => {
    document.querySelectorAll(".bd-article .highlight pre").forEach((pre) => {
      if (!pre.closest(".cell_output")) wrap(pre);
    });
    fitOutputs();
  });
  window.addEventListener("resize", fitOutputs);
  document.addEventListener("toggle", fitOutputs, true); // what is folded has no width until it opens
})();
