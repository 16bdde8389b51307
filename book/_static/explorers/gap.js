/* The mean score along an attribute and its mean gap (GDP), and the guarantee for new people: the estimators of
   frhsic_core.gdp and frhsic_core.gdp_bound. A test compares them with Python to nine digits. */

const BINS = 256, LEVELS = 20, FEWEST = 6;
const BANDWIDTHS = [0.03, 0.05, 0.075, 0.11, 0.17, 0.25, 0.4, 0.6, 1.0, 1.6, 3.0];
const UNDERSMOOTH = 0.5, WINDOW_ROWS = 30, WINDOW_SHARE = 0.02;
const SHARES = [0.8, 0.06, 0.07, 0.07];
const LARGEST_MOMENT = 2 * (5 * Math.sqrt(5) - 11);

const sum = (values) => values.reduce((total, value) => total + value, 0);
const dot = (a, b) => a.reduce((total, value, i) => total + value * b[i], 0);

/** The quantile of sorted numbers, by linear interpolation. */
function quantile(sorted, share) {
  const place = share * (sorted.length - 1), low = Math.floor(place), rest = place - low;
  if (rest === 0) return sorted[low];
  return sorted[low] + (sorted[low + 1] - sorted[low]) * rest;
}

/** The first place at which a value could be put into sorted numbers. */
function placeOf(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const distinctOf = (sorted) => Array.from(sorted).filter((value, i) => i === 0 || value !== sorted[i - 1]);

/** At most 256 bins of the attribute: their values, positions, counts, and the bin of each row. */
function binsOf(s) {
  const sorted = Float64Array.from(s).sort(), distinct = distinctOf(sorted);
  const median = quantile(sorted, 0.5);
  const spread = quantile(sorted, 0.9) - quantile(sorted, 0.1) ||
    quantile(sorted, 0.99) - quantile(sorted, 0.01) || sorted[sorted.length - 1] - sorted[0] || 1;
  const sparse = distinct.length > Math.max(FEWEST, s.length / 3);
  const smooth = distinct.length > LEVELS || sparse;
  const drawnIn = (value) => Math.asinh((value - median) / spread);
  if (distinct.length <= BINS) {
    const index = Array.from(s, (value) => placeOf(distinct, value));
    const counts = new Array(distinct.length).fill(0);
    index.forEach((bin) => counts[bin]++);
    return { values: distinct, positions: distinct.map(drawnIn), counts, index, smooth };
  }
  const cuts = Array.from({ length: BINS - 1 }, (_, i) => quantile(sorted, (i + 1) / BINS));
  const edges = distinctOf(Float64Array.from(cuts));
  const raw = Array.from(s, (value) => placeOf(edges, value));
  const used = distinctOf(Float64Array.from(raw).sort());
  const index = raw.map((bin) => placeOf(used, bin));
  const counts = new Array(used.length).fill(0), total = new Array(used.length).fill(0);
  index.forEach((bin, i) => { counts[bin]++; total[bin] += drawnIn(s[i]); });
  const positions = total.map((value, bin) => value / counts[bin]);
  const values = positions.map((position) => Math.sinh(position) * spread + median);
  return { values, positions, counts, index, smooth };
}

/** The least half width of a window around each bin with enough rows and enough distinct values. */
function leastWidths(bins, rows) {
  const needed = Math.min(Math.max(WINDOW_ROWS, WINDOW_SHARE * rows), 0.5 * rows);
  return bins.positions.map((here) => {
    const distance = bins.positions.map((there) => Math.abs(there - here));
    const order = distance.map((_, i) => i).sort((i, j) => distance[i] - distance[j] || i - j);
    let inside = 0, fewer = 0;
    for (const bin of order) {
      inside += bins.counts[bin];
      if (inside < needed) fewer++;
    }
    const place = Math.min(Math.max(fewer, FEWEST), order.length - 1);
    return 1.1 * distance[order[place]];
  });
}

/** Solve a small system of linear equations, with pivots. */
function solve(matrix, right) {
  const n = right.length, a = matrix.map((row, i) => [...row, right[i]]);
  for (let k = 0; k < n; k++) {
    let best = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(a[i][k]) > Math.abs(a[best][k])) best = i;
    [a[k], a[best]] = [a[best], a[k]];
    for (let i = k + 1; i < n; i++) {
      const factor = a[i][k] / a[k][k];
      for (let j = k; j <= n; j++) a[i][j] -= factor * a[k][j];
    }
  }
  const x = new Array(n).fill(0);
  for (let k = n - 1; k >= 0; k--) {
    let rest = a[k][n];
    for (let j = k + 1; j < n; j++) rest -= a[k][j] * x[j];
    x[k] = rest / a[k][k];
  }
  return x;
}

/** The matrix that maps means of bins to a local polynomial fit at every bin. */
function localPolynomial(positions, share, widths, degree) {
  return positions.map((here, row) => {
    const distance = positions.map((there) => (there - here) / widths[row]);
    const kernel = distance.map((d, j) => Math.max(0, 1 - d * d) * share[j]);
    const powers = [kernel];
    for (let p = 0; p < 2 * degree; p++) powers.push(powers[p].map((value, j) => value * distance[j]));
    const moments = powers.map(sum);
    const normal = Array.from({ length: degree + 1 }, (_, i) =>
      Array.from({ length: degree + 1 }, (_, j) => moments[i + j] + (i === j ? 1e-9 * moments[0] : 0)));
    const first = solve(normal, Array.from({ length: degree + 1 }, (_, i) => (i === 0 ? 1 : 0)));
    const fit = kernel.map((_, j) => first.reduce((total, value, p) => total + value * powers[p][j], 0));
    const whole = sum(fit);
    return fit.map((value) => value / whole); // a constant stays the constant
  });
}

/**
 * The curve of the mean score and GDP, its mean distance from the overall mean.
 * @param {Float64Array} f scores
 * @param {Float64Array} s attribute
 * @returns {{values: number[], mean: number[], share: number[], center: number, gdp: number}}
 */
export function curveOf(f, s) {
  const bins = binsOf(s), rows = f.length, share = bins.counts.map((count) => count / rows);
  const unit = f.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
  const totals = new Array(bins.values.length).fill(0);
  bins.index.forEach((bin, i) => { totals[bin] += f[i] / unit; });
  const means = totals.map((total, bin) => total / bins.counts[bin]);
  let fitted = means;
  if (bins.smooth) {
    let within = 0;
    bins.index.forEach((bin, i) => { within += (f[i] / unit - means[bin]) ** 2 / rows; });
    fitted = smoothed(bins, share, means, within, rows);
  }
  const center = dot(share, means), gap = fitted.map((value) => Math.abs(value - center));
  return {
    values: bins.values, mean: fitted.map((value) => value * unit), share,
    center: center * unit, gdp: dot(share, gap) * unit,
  };
}

/** The local quadratic fit at half of the bandwidth that is best for a local linear one. */
function smoothed(bins, share, means, within, rows) {
  const reach = leastWidths(bins, rows);
  let below = 0;
  const halfway = share.map((value) => { below += value; return below - 0.5 * value; });
  const at = (wanted) => {
    const right = placeOf(halfway, wanted);
    if (right === 0) return bins.positions[0];
    if (right === halfway.length) return bins.positions[right - 1];
    const part = (wanted - halfway[right - 1]) / (halfway[right] - halfway[right - 1]);
    return bins.positions[right - 1] + part * (bins.positions[right] - bins.positions[right - 1]);
  };
  const ends = bins.positions[bins.positions.length - 1] - bins.positions[0];
  const unit = at(0.95) - at(0.05) || ends;
  const widths = (bandwidth) => reach.map((least) => Math.max(bandwidth * unit, least));
  const apply = (fit, values) => fit.map((row) => dot(row, values));
  let best = BANDWIDTHS[0], least = Infinity;
  for (const bandwidth of BANDWIDTHS) {
    const fit = localPolynomial(bins.positions, share, widths(bandwidth), 1);
    const found = apply(fit, means);
    const residual = within + sum(share.map((value, i) => value * (means[i] - found[i]) ** 2));
    const freedom = Math.max(1 - sum(fit.map((row, i) => row[i])) / rows, 1e-3);
    const score = residual / freedom ** 2;
    if (score < least) [best, least] = [bandwidth, score];
  }
  const widest = 0.45 * Math.pow(2000 / rows, 1 / 6);
  const bandwidth = Math.min(UNDERSMOOTH * best, widest);
  return apply(localPolynomial(bins.positions, share, widths(bandwidth), 2), means);
}

const hoeffding = (width, n, level) => width * Math.sqrt(level / (2 * n));
const bernstein = (moment, largest, n, level) => Math.sqrt((2 * moment * level) / n) + (largest * level) / (3 * n);

function productMoment(variance, square) {
  const ratio = Math.min(variance / square, 1);
  return ratio <= 1 - Math.SQRT1_2 ? 4 * square * ratio * (1 - ratio) ** 2 : square / (2 - ratio);
}

/**
 * An upper bound on the mean gap over the values of the attribute, which holds with probability 1 − delta.
 * @param {Float64Array} f scores between 0 and 1
 * @param {Float64Array} groups the value of each row
 */
export function boundOf(f, groups, delta = 0.05) {
  const n = f.length, totals = new Map();
  const mean = sum(f) / n;
  f.forEach((score, i) => {
    const [count, total] = totals.get(groups[i]) ?? [0, 0];
    totals.set(groups[i], [count + 1, total + score]);
  });
  let estimate = 0;
  totals.forEach(([count, total]) => { estimate += (count / n) * Math.abs(total / count - mean); });
  const [one, two, three, four] = SHARES.map((share) => Math.log(1 / (share * delta)));
  const small = hoeffding(1, n, three + Math.LN2) * hoeffding(2, n, four + Math.LN2);
  const worst = bernstein(LARGEST_MOMENT, 2, n, one) + small;
  const plain = hoeffding(2, n, Math.log(1 / delta));
  let slack = plain + estimate / (n - 1);
  if (worst < plain) {
    const error = hoeffding(1, n, three + Math.LN2);
    const square = Math.min(1, Math.max(mean, 1 - mean) + error) ** 2;
    const sampled = sum(f.map((score) => (score - mean) ** 2)) / n, part = (square * two) / (2 * n);
    const root = Math.sqrt(part) + Math.sqrt(sampled + error ** 2 + part);
    const variance = Math.min(root ** 2, square, 0.25);
    const moment = Math.min(productMoment(variance, square), LARGEST_MOMENT);
    slack = bernstein(moment, 2 * Math.sqrt(square), n, one) + small;
  }
  return { estimate, bound: Math.min(estimate + slack, 0.5), groups: totals.size };
}

/**
 * Four groups of neighboring people of about equal size: mean score and the interval of its estimate.
 * @returns {Array<{from: number, to: number, rows: number, mean: number, half: number}>}
 */
export function quarters(f, s) {
  const order = Array.from(s, (_, i) => i).sort((i, j) => s[i] - s[j]);
  const cuts = [0.25, 0.5, 0.75].map((share) => s[order[Math.round(share * order.length)]]);
  const groups = [[], [], [], []];
  for (const i of order) groups[cuts.filter((cut) => s[i] >= cut).length].push(i);
  return groups.filter((rows) => rows.length > 1).map((rows) => {
    const mean = sum(rows.map((i) => f[i])) / rows.length;
    const variance = sum(rows.map((i) => (f[i] - mean) ** 2)) / (rows.length - 1);
    const half = 1.96 * Math.sqrt(variance / rows.length);
    return { from: s[rows[0]], to: s[rows[rows.length - 1]], rows: rows.length, mean, half };
  });
}
