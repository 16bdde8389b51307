/* The closed forms of frhsic_core/laws and the area under the Pareto envelope. A test
   compares every function with Python. Classic script, so that pages also work from file://. */
const frhsicFormulas = (() => {
  "use strict";

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

  function expectedSquaredMmd(rho, sigmaZ) {
    return meanKernel(sigmaZ) * excess(2 * coupling(rho, sigmaZ));
  }

  function conditionalSquaredMmd(rho, sigmaZ, s) {
    const x = coupling(rho, sigmaZ), q = Math.sqrt(1 - x), p = Math.sqrt(1 - 2 * x);
    const atZero = (2 * x * x * (1 + p + q)) / (p * q * (1 + p) * (1 + q) * (p + q));
    return meanKernel(sigmaZ) * (atZero - (2 * Math.expm1((-x * s * s) / (2 * (1 - x)))) / q);
  }

  // Gauss–Legendre nodes on [−1, 1] by Newton's method
  function legendreRule(n) {
    const nodes = [];
    for (let i = 0; i < n; i++) {
      let x = Math.cos((Math.PI * (i + 0.75)) / (n + 0.5)), slope = 1;
      for (let step = 0; step < 60; step++) {
        let before = 1, now = x;
        for (let k = 2; k <= n; k++) [before, now] = [now, ((2 * k - 1) * x * now - (k - 1) * before) / k];
        slope = (n * (x * now - before)) / (x * x - 1);
        const move = now / slope;
        x -= move;
        if (Math.abs(move) < 1e-16) break;
      }
      nodes.push([x, 2 / ((1 - x * x) * slope * slope)]);
    }
    return nodes;
  }
  const RULE = legendreRule(16);

  // E MMD: the root has a near-kink at s = 0, so panels shrink towards it
  function expectedMmd(rho, sigmaZ) {
    if (rho === 0) return 0;
    let total = 0, right = 12;
    for (let panel = 0; panel < 16; panel++) {
      const left = panel === 15 ? 0 : right / 2, half = (right - left) / 2, middle = (right + left) / 2;
      for (const [x, weight] of RULE) {
        const s = middle + half * x;
        const density = Math.exp(-0.5 * s * s) / Math.sqrt(2 * Math.PI);
        total += 2 * half * weight * density * Math.sqrt(conditionalSquaredMmd(rho, sigmaZ, s));
      }
      right = left;
    }
    return total;
  }

  function frequency(sigmaS) {
    return Math.sqrt(1 + 4 / (sigmaS * sigmaS));
  }

  // λ_1, …, λ_m in the paper's counting: entry 0 is λ_1
  function eigenvalues(sigmaS, m) {
    const omega = frequency(sigmaS), ratio = 4 / (sigmaS * sigmaS * (omega + 1) * (omega + 1));
    return Array.from({ length: m }, (_, l) => (2 / (omega + 1)) * Math.pow(ratio, l));
  }

  // √(l!)·[t^l] exp(quadratic·t²/2 + linear·t)
  function hermiteSeries(linear, quadratic, m) {
    const series = [1, linear];
    for (let l = 1; l < m - 1; l++)
      series.push((linear * series[l] + quadratic * Math.sqrt(l) * series[l - 1]) / Math.sqrt(l + 1));
    return series.slice(0, m);
  }

  function eigenfunctions(sigmaS, s, m) {
    const omega = frequency(sigmaS), envelope = Math.pow(omega, 0.25) * Math.exp(-0.25 * (omega - 1) * s * s);
    return hermiteSeries(Math.sqrt(omega) * s, -1, m).map((value) => value * envelope);
  }

  // ‖Δ_l‖² for the first m eigenfunctions
  function deltaCoefficients(rho, sigmaZ, sigmaS, m) {
    const q = coupling(rho, sigmaZ);
    if (q === 0) return new Array(m).fill(0);
    const omega = frequency(sigmaS), b = sigmaS * sigmaS, y = q / (1 - 2 * q), x = q / (1 - q);
    const scale = (omega + 1) * (omega + 1 + 4 * y);
    const factor = 2 * Math.sqrt(omega / (scale * (1 - 2 * q)));
    const own = (4 * (1 / b - y)) / scale, shared = (4 * omega * y) / scale, gap = shared * shared - own * own;
    const legendre = [1, shared];
    for (let l = 1; l < m - 1; l++)
      legendre.push(((2 * l + 1) * shared * legendre[l] - l * gap * legendre[l - 1]) / (l + 1));
    const ratio = 4 / (b * (omega + 1) * (omega + 1)), root = Math.pow(omega, 0.25);
    const means = hermiteSeries(0, ratio, m).map((v) => root * Math.sqrt(2 / (omega + 1)) * v);
    const tiltedFactor = root * Math.sqrt(2 / ((omega + 1 + 2 * x) * (1 - q)));
    const tilted = hermiteSeries(0, (omega - 1 - 2 * x) / (omega + 1 + 2 * x), m).map((v) => tiltedFactor * v);
    return means.map((mean, l) =>
      meanKernel(sigmaZ) * Math.max(factor * legendre[l] + mean * (mean - 2 * tilted[l]), 0));
  }

  // ρ_1², …, ρ_m²: what the first 1, …, m eigenfunctions leave over
  function tails(rho, sigmaZ, sigmaS, m) {
    const energies = deltaCoefficients(rho, sigmaZ, sigmaS, 400);
    const result = new Array(400).fill(0);
    for (let l = 398; l >= 0; l--) result[l] = result[l + 1] + energies[l + 1];
    return result.slice(0, m);
  }

  // HSIC/λ_m + ρ_m², the right side of Theorem 4.5
  function upperBounds(rho, sigmaZ, sigmaS, m) {
    const value = hsic(rho, sigmaZ, sigmaS), lambda = eigenvalues(sigmaS, m), tail = tails(rho, sigmaZ, sigmaS, m);
    return lambda.map((eigenvalue, l) => value / eigenvalue + tail[l]);
  }

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
    const means = Array.from({ length: groups }, (_, g) => mean(order.slice(Math.floor((g * z.length) / groups), Math.floor(((g + 1) * z.length) / groups))));
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
    correlation, binnedGap, distanceCorrelation, normalizedHsic,
    meanKernel, coupling, hsic, hsicSlope, floor, expectedSquaredMmd, conditionalSquaredMmd, expectedMmd,
    eigenvalues, eigenfunctions, deltaCoefficients, tails, upperBounds, areaUnderEnvelope,
  };
})();
