/* "Your own file": a visitor chooses two columns of a CSV and sees the curve, the gap and the guarantee. */
import { axes, element, pretty } from "./chart.js";
import { say } from "./controls.js";
import { numbersOf, readTable } from "./csv.js";
import { boundOf, curveOf, quarters } from "./gap.js";

const MOST_DOTS = 400, FEWEST_ROWS = 20, MOST_VALUES_OF_ROWS = 1 / 3;

/** The rows that have both numbers. */
function usable(scores, ages) {
  const f = [], s = [];
  scores.forEach((score, i) => {
    if (Number.isFinite(score) && Number.isFinite(ages[i])) { f.push(score); s.push(ages[i]); }
  });
  return { f: Float64Array.from(f), s: Float64Array.from(s) };
}

/** The attribute in whole numbers if most rows have a value of their own: a guarantee needs people of equal age. */
function valuesForBound(s) {
  const distinct = new Set(s).size;
  return distinct > MOST_VALUES_OF_ROWS * s.length ? s.map(Math.round) : s;
}

function measured(table, names) {
  const scores = numbersOf(table, names.score), ages = numbersOf(table, names.age);
  const { f, s } = usable(scores, ages);
  if (f.length < FEWEST_ROWS) throw new Error(`Only ${f.length} rows have both numbers: ${FEWEST_ROWS} are needed.`);
  const inUnit = f.every((score) => score >= 0 && score <= 1);
  return {
    f, s, left: scores.length - f.length, curve: curveOf(f, s), groups: quarters(f, s),
    bound: inUnit ? boundOf(f, valuesForBound(s)) : null,
  };
}

function draw(svg, found, names) {
  const ends = [Math.min(...found.curve.values), Math.max(...found.curve.values)];
  const shown = found.f.length > MOST_DOTS ? Math.ceil(found.f.length / MOST_DOTS) : 1;
  const dots = Array.from(found.f.keys()).filter((i) => i % shown === 0);
  const heights = dots.map((i) => found.f[i]);
  const low = Math.min(...heights), high = Math.max(...heights), pad = 0.05 * (high - low || 1);
  const chart = axes(svg, {
    height: 300,
    x: { from: ends[0], to: ends[1] > ends[0] ? ends[1] : ends[0] + 1, ticks: d3.ticks(...ends, 6), label: names.age },
    y: { from: low - pad, to: high + pad, ticks: d3.ticks(low, high, 4), label: names.score },
  });
  const color = d3.scaleSequential(d3.interpolateViridis).domain(ends);
  for (const i of dots) chart.dot(found.s[i], found.f[i], "person", 2.5).style.fill = color(found.s[i]);
  chart.level(found.curve.center, "faint dashed");
  for (const group of found.groups) {
    const top = chart.y(group.mean + group.half), bottom = chart.y(group.mean - group.half);
    const place = { x: chart.x(group.from), width: Math.max(2, chart.x(group.to) - chart.x(group.from)) };
    element("rect", { ...place, y: top, height: Math.max(2, bottom - top), class: "bar two" }, svg).style.opacity = 0.3;
  }
  chart.line(found.curve.mean.map((mean, i) => [found.curve.values[i], mean]), "one");
}

function told(found, names) {
  const { curve, bound, left } = found;
  const highest = curve.mean.indexOf(Math.max(...curve.mean)), lowest = curve.mean.indexOf(Math.min(...curve.mean));
  const gap = `Along ${names.age} the mean ${names.score} is ${pretty(curve.gdp, 2)} away from the overall mean on average. ` +
    `It is highest around ${pretty(curve.values[highest])} and lowest around ${pretty(curve.values[lowest])}.`;
  const missing = left ? ` ${left} rows without both numbers are left out.` : "";
  if (!bound) return `${gap}${missing} A guarantee needs scores between 0 and 1.`;
  const most = Math.ceil(1000 * bound.bound) / 1000;
  return `${gap}${missing} For new people like these it is at most ${most} with 95 % confidence, ` +
    "if they are independent and none of them was used to train or choose the model.";
}

/** A command that gives the full report; names with spaces are quoted. */
function commandFor(file, names) {
  const quoted = (name) => (/^[\w./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`);
  return `frhsic audit ${quoted(file)} --score ${quoted(names.score)} --sensitive ${quoted(names.age)}`;
}

/** Choose what looks like a score and like an age, so that the first picture needs no click. */
function guess(names) {
  const find = (words, other) => names.find((name) => words.test(name) && name !== other) ??
    names.find((name) => name !== other) ?? names[0];
  const age = find(/age|alter|years/i);
  return { age, score: find(/^p$|score|prob|pred/i, age) };
}

export function ownFile(root) {
  const input = root.querySelector("input[type=file]"), selects = root.querySelectorAll("select");
  const svg = root.querySelector("svg"), command = root.querySelector("code");
  const show = () => {
    const names = { score: selects[0].value, age: selects[1].value };
    try {
      root.found = measured(root.table, names);
      draw(svg, root.found, names);
      say(root, { sentence: told(root.found, names) });
      command.textContent = commandFor(root.file, names);
    } catch (error) {
      root.found = null;
      svg.replaceChildren();
      command.textContent = "";
      say(root, { sentence: error.message });
    }
  };
  const open = async (file) => {
    if (!file) return;
    root.file = file.name;
    try {
      root.table = readTable(await file.text());
    } catch (error) {
      say(root, { sentence: error.message });
      return;
    }
    const first = guess(root.table.names);
    [first.score, first.age].forEach((chosen, i) => {
      selects[i].replaceChildren(...root.table.names.map((name) => new Option(name, name, false, name === chosen)));
      selects[i].disabled = false;
    });
    show();
  };
  input.addEventListener("change", () => open(input.files[0]));
  selects.forEach((select) => select.addEventListener("change", show));
  root.addEventListener("dragover", (event) => event.preventDefault());
  root.addEventListener("drop", (event) => { event.preventDefault(); open(event.dataTransfer.files[0]); });
}
