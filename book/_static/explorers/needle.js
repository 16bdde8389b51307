/* The first picture of the book: a model that never saw the age, and where the age goes under a penalty. */
import { axes, element, measures, sheet } from "./chart.js";
import { say } from "./controls.js";

const REACH = 320; // hundredths of a standard deviation that the cloud shows
const SECONDS = 0.9; // that the needle takes to widen

const perCent = (share) => `${Math.round(100 * share)} %`;

/** The dots of a frame between their true proportions (0) and equal width in all directions (1). */
function placed(frame, width) {
  const [a, b, c] = frame.squeeze;
  const keep = 1 - width;
  return frame.points.map(([x, y]) => [
    keep * (a * x + b * y) + width * x,
    keep * (b * x + c * y) + width * y,
  ]);
}

/** People at their age and score, with the curve of the mean score. */
function drawStrip(svg, data, frame) {
  const chart = axes(svg, {
    height: 250,
    x: { from: 19, to: 71, ticks: [20, 30, 40, 50, 60, 70], label: "age" },
    y: { from: 0, to: 1, ticks: [0, 0.5, 1], label: "score" },
  });
  frame.scores.forEach((score, i) => {
    chart.dot(data.ages[i], score / 100, "person", 3).style.fill = data.colors[i];
  });
  chart.level(frame.mean, "faint dashed");
  chart.line(frame.curve.map((score, i) => [data.grid[i], score]), "one");
}

/** People where the encoder puts them. */
function drawCloud(svg, data, frame, width) {
  const room = Math.max(200, svg.parentNode.clientWidth), side = Math.min(room, 250), middle = room / 2;
  sheet(svg, room, side);
  element("rect", { x: middle - side / 2 + 0.5, y: 0.5, width: side - 1, height: side - 1, class: "frame" }, svg);
  placed(frame, width).forEach(([x, y], i) => {
    if (Math.abs(x) > REACH || Math.abs(y) > REACH) return;
    const place = { cx: middle + (side / 2) * (x / REACH), cy: (side / 2) * (1 - y / REACH), r: 3 };
    element("circle", { ...place, class: "dot person" }, svg).style.fill = data.colors[i];
  });
}

/** What the two gauges mean for somebody who has just moved a slider or pressed a button. */
function lesson(frame, first, close) {
  const before = perCent(first.nonlinear_r2), now = perCent(frame.nonlinear_r2);
  const fell = perCent(1 - frame.normalized_hsic / first.normalized_hsic);
  if (frame.lam === 0 && !close) {
    return "No age column, and still the mean score rises with age. Raise the penalty on dependence.";
  }
  if (frame.lam === 0) {
    return `Stretched to equal width the people are sorted by age: a second model guesses ${before} of its variance.`;
  }
  const penalty = `At λ = ${frame.lam} the measure of dependence is ${fell} smaller`;
  if (!close) return `${penalty}, and the curve is flatter. Is the age gone? Look closer.`;
  if (frame.nonlinear_r2 > 0.25) {
    return `${penalty}, but the colors come apart: a second model still guesses ${now} of the variance of age ` +
      `(${before} without a penalty). The age was where the measure hardly looks.`;
  }
  return `${penalty}, and a second model guesses ${now} of the variance of age (${before} without a penalty).`;
}

export function needle(root, v) {
  const data = root.data, frame = data.forms[v.form][v.step], first = data.forms[v.form][0];
  const [strip, cloud, gauges] = root.querySelectorAll("svg");
  const close = v.view === "stretched", wanted = close ? 1 : 0;
  const output = root.querySelector("output");
  output.textContent = String(frame.lam);
  root.querySelector("input[name=step]").setAttribute("aria-valuetext", `λ = ${frame.lam}`);
  drawStrip(strip, data, frame);
  measures(gauges, [
    ["HSIC, the measure that the penalty lowers", frame.normalized_hsic, "one", first.normalized_hsic * 1.05,
      first.normalized_hsic],
    ["variance of age that a second model guesses, R²", frame.nonlinear_r2, "two", 1, first.nonlinear_r2],
    ["accuracy", frame.accuracy, "faint", 1, first.accuracy],
  ]);
  say(root, { sentence: lesson(frame, first, close) });

  // The needle widens in about a second, unless the reader prefers still pictures.
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches || root.width === undefined;
  if (still) root.width = wanted;
  cancelAnimationFrame(root.moving);
  const start = performance.now(), from = root.width;
  const move = (now) => {
    const share = wanted === from ? 1 : Math.min(1, (now - start) / (1000 * SECONDS));
    root.width = from + (wanted - from) * share;
    drawCloud(cloud, data, frame, root.width);
    if (share < 1) root.moving = requestAnimationFrame(move);
  };
  move(start);
}
