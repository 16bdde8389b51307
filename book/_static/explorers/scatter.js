/* Draw your own points. */
import { axes, element, measures } from "./chart.js";
import { say } from "./controls.js";
import { formulas } from "./formulas.js";

/* Numbers that repeat: the same shape gives the same points. */
function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 4294967296;
  };
}

const MOST_POINTS = 300, NO_POINTS = 6; // the last shape is an empty sheet

const MOST_GAP = 4.5; // two tenths of the people are at most √20 standard deviations apart

function shapePoints(shape, noise, n) {
  const draw = seeded(7), normal = () => Math.sqrt(-2 * Math.log(draw())) * Math.cos(2 * Math.PI * draw());
  return Array.from({ length: n }, () => {
    const u = 2 * draw() - 1, e = noise * normal();
    const places = [
      [u, 0.8 * u + e], [u, 0.7 * Math.cos(Math.PI * u) + e],
      [0.75 * Math.cos(Math.PI * u) + 0.5 * e, 0.75 * Math.sin(Math.PI * u) + 0.5 * noise * normal()],
      [u, (u + 1) * (0.15 + noise) * normal()], [u, (u > 0 ? 0.5 : -0.5) + e], [u, 0.45 * normal()],
    ];
    return places[shape].map((x) => Math.max(-1, Math.min(1, x)));
  });
}

/* Add and remove points by mouse or finger (press, drag to draw a trail) and by keyboard (a cross that arrows move). */
function drawing(root, svg, a) {
  const near = ([s, z], reach) => {
    const gaps = root.points.map((p) => Math.hypot(a.x(p[0]) - a.x(s), a.y(p[1]) - a.y(z)));
    const least = Math.min(...gaps);
    return least <= reach ? gaps.indexOf(least) : -1;
  };
  const add = (point) => { if (root.points.length < MOST_POINTS && point.every((x) => Math.abs(x) <= 1.05)) root.points.push(point); };
  const place = (event) => {
    const box = svg.getBoundingClientRect(), ratio = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * ratio, y = (event.clientY - box.top) * ratio;
    return [-1.05 + (2.1 * (x - a.box.left)) / (a.box.right - a.box.left), 1.05 - (2.1 * (y - a.box.top)) / (a.box.bottom - a.box.top)];
  };
  const later = () => { root.frame ||= requestAnimationFrame(() => { root.frame = 0; root.update(); }); };
  svg.style.touchAction = "none"; // a finger draws here; the page scrolls beside the picture
  svg.tabIndex = 0;
  svg.setAttribute("role", "application");
  svg.setAttribute("aria-label", "Drawing area, S to the right and Z upwards. Arrow keys move the cross, Enter adds a point, Delete removes the nearest one.");
  svg.onpointerdown = (event) => {
    const point = place(event), hit = near(point, event.pointerType === "touch" ? 14 : 6);
    root.cross = null;
    root.trail = hit < 0 ? event.pointerId : null; // a press that removes a point draws no trail
    svg.setPointerCapture(event.pointerId);
    if (hit < 0) add(point);
    else root.points.splice(hit, 1);
    later();
  };
  svg.onpointermove = (event) => {
    if (!event.buttons || root.trail !== event.pointerId) return;
    const point = place(event);
    if (near(point, 12) < 0) { add(point); later(); }
  };
  svg.onpointerup = svg.onpointercancel = () => { root.trail = null; };
  svg.onkeydown = (event) => {
    const [s, z] = root.cross || [0, 0], step = event.shiftKey ? 0.2 : 0.05, end = (x) => Math.max(-1, Math.min(1, x));
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    const hit = event.key === "Delete" || event.key === "Backspace" ? near([s, z], Infinity) : -1;
    if (moves[event.key]) root.cross = [end(s + moves[event.key][0]), end(z + moves[event.key][1])];
    else if (event.key === "Enter" || event.key === " ") add(root.cross = [s, z]);
    else if (hit >= 0) root.points.splice(hit, 1);
    else return;
    event.preventDefault();
    later();
  };
  if (root.cross) {
    const [x, y] = [a.x(root.cross[0]), a.y(root.cross[1])];
    element("path", { d: `M${x - 9} ${y}H${x + 9}M${x} ${y - 9}V${y + 9}`, class: "line cross" }, svg);
  }
}

export function scatter(root, v) {
  const asked = `${v.shape} ${v.noise}`;
  root.restart = () => { root.asked = root.cross = null; };
  if (root.asked !== asked) {
    root.asked = asked;
    root.points = Number(v.shape) < NO_POINTS ? shapePoints(Number(v.shape), v.noise, 120) : [];
  }
  const [left, right] = root.querySelectorAll("svg");
  const a = axes(left, { height: 300, x: { from: -1.05, to: 1.05, ticks: [], label: "S" }, y: { from: -1.05, to: 1.05, ticks: [], label: "Z" } });
  root.points.forEach(([s, z]) => a.dot(s, z, "two", 4.5));
  drawing(root, left, a);
  const s = root.points.map((p) => p[0]), z = root.points.map((p) => p[1]), enough = s.length > 5;
  const rows = [
    ["|correlation|", enough ? Math.abs(formulas.correlation(z, s)) : 0, "one"],
    ["gap between two groups of S, in standard deviations", enough ? formulas.binnedGap(z, s, 2) : 0, "one", MOST_GAP],
    ["gap between ten groups of S, in standard deviations", enough ? formulas.binnedGap(z, s, 10) : 0, "one", MOST_GAP],
    ["distance correlation", enough ? formulas.distanceCorrelation(z, s) : 0, "two"],
    ["√ normalized HSIC", enough ? Math.sqrt(formulas.normalizedHsic(z, s)) : 0, "two"],
  ];
  measures(right, rows);
  root.measured = Object.fromEntries(rows.map(([name, value]) => [name, value]));
  say(root, {
    sentence: !enough ? `${s.length} points. Add at least six.` : `${s.length} points. ` + (rows[0][1] < 0.15 && rows[4][1] > 0.25 ?
      "The correlation is near zero, and Z depends on S all the same: distance correlation and HSIC are clearly positive." :
      rows[0][1] > 0.5 ? `Every measure finds this dependence, because on the whole Z ${formulas.correlation(z, s) > 0 ? "rises" : "falls"} with S.` :
        "With this many points distance correlation and HSIC are not zero even for a cloud: a finite sample has a floor."),
  });
}
