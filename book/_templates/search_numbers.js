/* Sphinx ignores numbers in a query. Statements of the paper are found by theirs: "Theorem 4.7", "thm 4.7" and "4.7" lead
   to the box first. Summaries of results show the text of the article, with formulas
   free of TeX commands. */
;(() => { // what stands before this in the file has no semicolon
  const perform = Search._performSearch;
  Search._performSearch = (query, ...others) => {
    const results = perform(query, ...others);
    const asked = query.toLowerCase().match(/(?:^|\s)([a-h]|\d+)\.(\d+)(?=$|[\s,.?])/);
    if (!asked) return results;
    const number = `${asked[1]}.${asked[2]}`;
    const kind = (query.toLowerCase().match(/\b(thm|theorem|prop|cor|lem|rem|def)/) || [""])[0].replace("thm", "theorem");
    const index = Search._index, found = [];
    for (const [entry, places] of Object.entries(index.indexentries)) {
      if (!entry.endsWith(` ${number}`) || !entry.startsWith(kind)) continue;
      const name = entry[0].toUpperCase() + entry.slice(1, -number.length) + number.toUpperCase();
      for (const [file, id] of places) {
        found.push([index.docnames[file], `${name}: ${index.titles[file]}`, id ? `#${id}` : "", null, 100, index.filenames[file]]);
      }
    }
    const isFound = (result) => found.some((one) => one[0] === result[0] && (one[2] === result[2] || result[1].endsWith(`> ${one[1].split(":")[0]}`)));
    return [...results.filter((result) => !isFound(result)), ...found]; // the last one is shown first
  };

  const plain = (text) => text
    .replace(/\\[([]|\\[)\]]/g, "")
    .replace(/\\(?:mathcal|mathbb|mathrm|operatorname|tilde|hat|bar|norm|lVert|rVert|left|right|,|;|!)\b/g, "")
    .replace(/\\le\b/g, "≤").replace(/\\ge\b/g, "≥").replace(/\\([A-Za-z]+)/g, " $1").replace(/[{}\\]/g, "");
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    page.querySelectorAll(".headerlink, script, style, .cell_input").forEach((node) => node.remove());
    const place = anchor && page.getElementById(anchor.slice(1)); // the place of an index entry is empty
    const part = (place && (place.textContent.trim() ? place : place.closest("section"))) || page.querySelector("article") || page.body;
    return plain(part.textContent).replace(/\s+/g, " ");
  };
})();
