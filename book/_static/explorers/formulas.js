/* The closed forms of frhsic_core/laws and the area under the Pareto envelope. A test compares every function with
   Python. */
export const formulas = (() => {

  // (1 − x)^(−1/2) − 1 without cancellation at x = 0
  function excess(x) {
    const root = Math.sqrt(1 - x);
    return x / (root * (1 + root));
  }

  function meanKernel(bandwidth) {
    return bandwidth / Math.sqrt(bandwidth * bandwidth + 2);
  }

  function coupling(rho, bandwidth) {
    return (rho * rho) / (bandwidth * bandwidth + 2);
  }

  function hsic(rho, sigmaZ, sigmaS) {
    const r = coupling(rho, sigmaZ) / (sigmaS * sigmaS + 2);
    return meanKernel(sigmaZ) * meanKernel(sigmaS) * (excess(4 * r) - 2 * excess(r));
  }

  // ∂HSIC/∂ρ: what pulls an encoder towards less dependence
  function hsicSlope(rho, sigmaZ, sigmaS) {
    const r = coupling(rho, sigmaZ) / (sigmaS * sigmaS + 2);
    const inner = 2 * Math.pow(1 - 4 * r, -1.5) - Math.pow(1 - r, -1.5);
    return (meanKernel(sigmaZ) * meanKernel(sigmaS) * inner * 2 * rho) / ((sigmaZ * sigmaZ + 2) * (sigmaS * sigmaS + 2));
  }

  // Mean of the biased estimate from n rows of an independent pair
  function floor(sigmaZ, sigmaS, n) {
    return ((1 - meanKernel(sigmaZ)) * (1 - meanKernel(sigmaS)) * (1 - 1 / n)) / n;
  }

  // Eigenvalues, largest first, and eigenvectors of a symmetric matrix, by Jacobi's rotations
  function symmetricEigen(matrix) {
    const n = matrix.length, a = matrix.map((row) => row.slice()), v = a.map((_, i) => a.map((_, j) => (i === j ? 1 : 0)));
    for (let sweep = 0; sweep < 30; sweep++) {
      let off = 0;
      for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) {
        if (Math.abs(a[p][q]) < 1e-17) continue;
        off += a[p][q] ** 2;
        const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1)), c = 1 / Math.sqrt(t * t + 1), s = t * c;
        const turn = (row, i, j, x = row[i], y = row[j]) => { row[i] = c * x - s * y; row[j] = s * x + c * y; };
        for (const row of a) turn(row, p, q);
        const first = a[p], second = a[q];
        for (let k = 0, x; k < n; k++) { x = first[k]; first[k] = c * x - s * second[k]; second[k] = s * x + c * second[k]; }
        for (const row of v) turn(row, p, q);
      }
      if (off < 1e-30) break;
    }
    const order = a.map((_, i) => i).sort((i, j) => a[j][j] - a[i][i]);
    return { values: order.map((i) => a[i][i]), vectors: order.map((i) => v.map((row) => row[i])) };
  }

  // x'Ax
  const form = (x, a) => x.reduce((sum, xi, i) => sum + xi * x.reduce((part, xj, j) => part + a[i][j] * xj, 0), 0);

  // The hiring table: the share of young people, the shares of hired young and old people, and the similarity of the ages
  function twoGroups(share, young, old, similarity) {
    const weights = [share, 1 - share], all = share * young + (1 - share) * old, contrasts = [young - all, old - all];
    const weighted = contrasts.map((x, i) => x * weights[i]);
    return {
      contrasts, all,
      supOfMean: Math.abs(weighted[0] + weighted[1]), // one function for both ages
      glued: Math.max(...[-1, 1].flatMap((a) => [-1, 1].map((b) => a * weighted[0] + b * weighted[1]))), // a function for each age
      meanOfSup: Math.abs(weighted[0]) + Math.abs(weighted[1]), // E MMD, and GDP of the prediction
      rootHsic: Math.sqrt(Math.max(0, form(weighted, [[1, similarity], [similarity, 1]]))),
    };
  }

  // Hiring in waves over the ages from 20 to 69: both sides of Theorem 4.5 for every m
  const known = new Map(); // one decomposition for each bandwidth
  const AGES = Array.from({ length: 50 }, (_, i) => 20 + i);
  function hiringWaves(waves, bandwidth) {
    const hired = AGES.map((age) => 0.5 + 0.3 * Math.sin((2 * Math.PI * waves * (age - 19.5)) / 50));
    const all = mean(hired), delta = hired.map((x) => x - all), n = AGES.length;
    const kernel = AGES.map((a) => AGES.map((b) => Math.exp(-((a - b) ** 2) / (2 * bandwidth ** 2))));
    if (!known.has(bandwidth)) known.set(bandwidth, symmetricEigen(kernel.map((row) => row.map((x) => x / n))));
    const { values, vectors } = known.get(bandwidth);
    const along = vectors.map((v) => v.reduce((sum, x, i) => sum + x * delta[i], 0));
    const energy = along.map((x) => (2 * x * x) / n), squared = 2 * mean(delta.map((x) => x * x)), hsic = (2 * form(delta, kernel)) / (n * n);
    let left = squared;
    const tail = energy.map((x) => Math.max(0, (left -= x)));
    const resolved = (m) => AGES.map((_, i) => all + vectors.slice(0, m).reduce((sum, v, l) => sum + along[l] * v[i], 0));
    return { ages: AGES, hired, lambda: values, energy, tail, hsic, squared, bound: values.map((x, l) => hsic / x + tail[l]), resolved };
  }

  // Four people of 20, 30, 40 and 50 years: the three sides of Theorem 4.7 for m = 1, 2, 3
  function fourPeople(scores) {
    const n = 4, center = mean(scores), delta = scores.map((x) => x - center);
    const gram = delta.map((_, i) => delta.map((_, j) => Math.max(0, 1 - Math.abs(i - j) / 2)));
    const { values, vectors } = symmetricEigen(centered(gram).map((row) => row.map((x) => x / n)));
    const hsic = form(delta, gram) / (n * n), along = vectors.map((v) => v.reduce((sum, x, i) => sum + x * delta[i], 0));
    const resolved = [1, 2, 3].map((m) => delta.map((_, i) => vectors.slice(0, m).reduce((sum, v, l) => sum + along[l] * v[i], 0)));
    return {
      center, hsic, lambda: values.slice(0, 3), resolved, variance: mean(delta.map((x) => x * x)),
      absolute: resolved.map((x) => mean(x.map(Math.abs)) ** 2), square: resolved.map((x) => mean(x.map((y) => y * y))),
      bound: values.slice(0, 3).map((x) => hsic / x),
    };
  }

  // Upper bounds on HSIC from its value on n people, for the best of k encoders that were fixed in advance
  function sampleBounds(value, n, k, delta) {
    const printed = 8 * Math.SQRT2 * Math.sqrt(Math.log((2 * k) / delta) / n) + 4 / n;
    const proved = Math.sqrt(3) * Math.sqrt(Math.log((2 * k) / delta) / n) + 2 / n;
    const root = (n / (n - 1)) * Math.sqrt(value) + Math.sqrt((3 * Math.log(k / delta)) / n);
    return { printed: value + printed, proved: value + proved, root: root * root };
  }

  // Bounds on GDP for scores that are fair coins, independent of groups of equal share: what is said at n people
  const PARTS = [0.8, 0.06, 0.07, 0.07], LARGEST = 2 * (5 * Math.sqrt(5) - 11);

  function productMoment(variance, square) {
    const ratio = Math.min(variance / square, 1);
    return ratio <= 1 - Math.SQRT1_2 ? 4 * square * ratio * (1 - ratio) ** 2 : square / (2 - ratio);
  }

  function slackOnce(n, gap, delta) {
    const [one, , three, four] = PARTS.map((part) => Math.log(1 / (part * delta)));
    const error = Math.sqrt((three + Math.LN2) / (2 * n)), small = error * 2 * Math.sqrt((four + Math.LN2) / (2 * n));
    const bernstein = (v, largest) => Math.sqrt((2 * v * one) / n) + (largest * one) / (3 * n);
    const difference = 2 * Math.sqrt(Math.log(1 / delta) / (2 * n));
    if (bernstein(LARGEST, 2) + small >= difference) return difference + gap / (n - 1);
    const square = Math.min(1, 0.5 + error) ** 2;
    return bernstein(Math.min(productMoment(0.25, square), LARGEST), 2 * Math.sqrt(square)) + small;
  }

  function mixtureRadius(width, n, level, rows) {
    const rho = (rows * (width / 2) ** 2) / (2 * level + Math.log(1 + 2 * level)), total = n * (width / 2) ** 2;
    return Math.sqrt((total + rho) * (2 * level + Math.log1p(total / rho))) / n;
  }

  function slackAlways(n, delta, rows) {
    const [one, , three, four] = PARTS.map((part) => Math.log(1 / (part * delta))), few = Math.max(2, Math.floor(rows / 20));
    const error = mixtureRadius(1, n, three, few), signs = mixtureRadius(2, n, four, few), square = Math.min(1, 0.5 + error) ** 2;
    const v = Math.min(productMoment(0.25, square), LARGEST), grid = Array.from({ length: 30 }, (_, k) => Math.pow(2, -0.5 * k));
    const wanted = Math.sqrt((2 * one) / (rows * 0.25)), raw = grid.map((rate) => Math.pow(1 + Math.abs(Math.log2(rate / wanted)) / 0.5, -1.5));
    const sum = raw.reduce((a, b) => a + b, 0);
    const constant = grid.map((rate, k) => Math.log(raw[k] / sum) - (n * v * (Math.expm1(2 * rate) - 2 * rate)) / 4);
    let low = 0, high = Math.min(...grid.map((rate, k) => (one - constant[k]) / (n * rate)));
    for (let step = 0; step < 60; step++) {
      const middle = (low + high) / 2, exponents = grid.map((rate, k) => constant[k] + n * middle * rate), top = Math.max(...exponents);
      if (top + Math.log(exponents.reduce((a, b) => a + Math.exp(b - top), 0)) >= one) high = middle;
      else low = middle;
    }
    return high + error * signs;
  }

  // The estimate is the mean of GDP_n; the last number is below the median of every valid bound (see the chapter)
  function promised(n, groups, looks, delta = 0.05, rows = 10000) {
    const gap = 0.5 * Math.sqrt((2 / Math.PI) * ((groups - 1) / n)), most = (value) => Math.min(0.5, value);
    const many = Math.pow((Math.log1p((1 - 2 * delta) ** 2) / 16) * groups, 0.25);
    return {
      estimate: most(gap), once: most(gap + slackOnce(n, gap, delta)), divided: most(gap + slackOnce(n, gap, delta / looks)),
      always: most(gap + slackAlways(n, delta, rows)), limit: most(Math.max(LIMIT, many) / Math.sqrt(n)),
    };
  }
  const LIMIT = 1.1527; // for δ = .05, rounded down; frhsic_core.paper.statements.limits computes it

  // Normalised area under the Pareto envelope; methods: {name: [{u, g}]} with u in [0, 1] and g = dependence / Unfair's
  function areaUnderEnvelope(points) {
    const grid = Array.from({ length: 201 }, (_, i) => i / 200);
    const height = grid.map((g) => points.reduce((best, p) => (p.g <= g && p.u > best ? p.u : best), 0));
    let area = 0;
    for (let i = 0; i < 200; i++) area += (height[i] + height[i + 1]) / 400;
    return area;
  }

  // Statistics of a sample, one number each for z and s
  const mean = (x) => x.reduce((a, b) => a + b, 0) / x.length;

  function correlation(z, s) {
    const a = mean(z), b = mean(s);
    let zs = 0, zz = 0, ss = 0;
    for (let i = 0; i < z.length; i++) {
      zs += (z[i] - a) * (s[i] - b);
      zz += (z[i] - a) ** 2;
      ss += (s[i] - b) ** 2;
    }
    return zz > 0 && ss > 0 ? zs / Math.sqrt(zz * ss) : 0;
  }

  // Largest difference between the means of z in groups of s of equal size, in standard deviations of z
  function binnedGap(z, s, groups) {
    const order = s.map((value, i) => [value, z[i]]).sort((a, b) => a[0] - b[0]).map((pair) => pair[1]);
    const a = mean(z), spread = Math.sqrt(mean(z.map((value) => (value - a) ** 2)));
    const parts = Array.from({ length: groups }, (_, g) => order.slice(Math.floor((g * z.length) / groups), Math.floor(((g + 1) * z.length) / groups)));
    const means = parts.filter((part) => part.length).map(mean); // fewer points than groups leave some empty
    return spread > 0 ? (Math.max(...means) - Math.min(...means)) / spread : 0;
  }

  function centered(matrix) {
    const n = matrix.length, rows = matrix.map(mean), all = mean(rows);
    return matrix.map((row, i) => row.map((value, j) => value - rows[i] - rows[j] + all));
  }

  function product(a, b) {
    let total = 0;
    for (let i = 0; i < a.length; i++) for (let j = 0; j < a.length; j++) total += a[i][j] * b[i][j];
    return total;
  }

  const distances = (x) => x.map((a) => x.map((b) => Math.abs(a - b)));

  function ofCentered(z, s, make) {
    const a = centered(make(z)), b = centered(make(s)), own = Math.sqrt(product(a, a) * product(b, b));
    return own > 0 ? Math.max(0, product(a, b)) / own : 0;
  }

  function distanceCorrelation(z, s) {
    return Math.sqrt(ofCentered(z, s, distances));
  }

  // Gaussian kernels at the (lower) median distance between two points
  function medianKernel(x) {
    const far = distances(x), listed = [];
    for (let i = 0; i < x.length; i++) for (let j = 0; j < i; j++) listed.push(far[i][j]);
    listed.sort((a, b) => a - b);
    const sigma = listed[Math.floor((listed.length - 1) / 2)] || mean(listed) || 1;
    return far.map((row) => row.map((d) => Math.exp((-d * d) / (2 * sigma * sigma))));
  }

  function normalizedHsic(z, s) {
    return ofCentered(z, s, medianKernel);
  }

  return {
    correlation, binnedGap, distanceCorrelation, normalizedHsic, areaUnderEnvelope,
    meanKernel, coupling, hsic, hsicSlope, floor, symmetricEigen, twoGroups, hiringWaves, fourPeople, sampleBounds, promised,
  };
})();
