/* Read a table that a visitor drops on the page. It never leaves the browser. */

const DELIMITERS = [",", ";", "\t", "|"];
const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/;
const WITH_COMMA = /^[-+]?\d*,\d+$/;
const MISSING = new Set(["", "na", "n/a", "nan", "null", "none"]);

/**
 * Split a text into rows of cells, with quotes as in RFC 4180.
 * @param {string} text
 * @param {string} delimiter
 * @returns {string[][]}
 */
export function cellsOf(text, delimiter) {
  const rows = [];
  let row = [], cell = "", quoted = false;
  const endRow = () => {
    row.push(cell);
    if (row.length > 1 || row[0].trim() !== "") rows.push(row);
    row = [];
    cell = "";
  };
  for (let i = 0; i < text.length; i++) {
    const sign = text[i];
    if (quoted) {
      if (sign !== '"') cell += sign;
      else if (text[i + 1] === '"') { cell += '"'; i++; }
      else quoted = false;
    } else if (sign === '"' && cell === "") quoted = true;
    else if (sign === delimiter) { row.push(cell); cell = ""; }
    else if (sign === "\n") endRow();
    else if (sign !== "\r") cell += sign;
  }
  if (quoted) throw new Error("A quotation mark is opened and never closed.");
  if (cell !== "" || row.length) endRow();
  return rows;
}

/**
 * Read a table: the names of its columns and the cells below.
 * @param {string} text
 * @returns {{names: string[], rows: string[][]}}
 */
export function readTable(text) {
  const plain = text.replace(/^\uFEFF/, "");
  const head = plain.slice(0, plain.indexOf("\n") < 0 ? plain.length : plain.indexOf("\n"));
  const counts = DELIMITERS.map((delimiter) => cellsOf(head, delimiter)[0]?.length ?? 0);
  const rows = cellsOf(plain, DELIMITERS[counts.indexOf(Math.max(...counts))]);
  if (rows.length < 2) throw new Error("The file has no rows below its header.");
  const names = rows[0].map((name) => name.trim());
  const wrong = rows.findIndex((row) => row.length > names.length && row.slice(names.length).some((cell) => cell.trim()));
  if (wrong > 0) throw new Error(`Row ${wrong} has more cells than the header has names.`);
  return { names, rows: rows.slice(1) };
}

/**
 * Return a column as numbers, NaN where the cell is empty. Anything else is an error that names the cell.
 * @param {{names: string[], rows: string[][]}} table
 * @param {string} name
 */
export function numbersOf(table, name) {
  const place = table.names.indexOf(name);
  const cells = table.rows.map((row) => (row[place] ?? "").trim());
  const known = cells.filter((cell) => !MISSING.has(cell.toLowerCase()));
  const comma = known.some((cell) => WITH_COMMA.test(cell)) && !known.some((cell) => cell.includes("."));
  return Float64Array.from(cells, (cell) => {
    if (MISSING.has(cell.toLowerCase())) return NaN;
    const plain = comma ? cell.replace(",", ".") : cell;
    if (!NUMBER.test(plain)) throw new Error(`${name} has ${JSON.stringify(cell.slice(0, 40))}, which is no number.`);
    return Number(plain);
  });
}
