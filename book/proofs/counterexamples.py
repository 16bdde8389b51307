"""Compute a finite counterexample to each wrong statement of mutants.csv.

A proof that Coq rejects does not show that a statement is false; a counterexample does. Each line
prints a number that is larger than the wrong statement allows, and the script stops at the first
that is not.
"""

import itertools
import math

import numpy as np


def show(name, left, right):
    assert left > right + 1e-9, (name, left, right)
    print(f"{name}: {left:.6g} > {right:.6g}")


def gdp(p, f):
    ps, pz = p.sum(0), p.sum(1)
    return sum(abs(f @ (p[:, s] - pz * ps[s])) for s in range(p.shape[1]))


def gdp_n(f, g):
    return sum(abs(np.mean((f - f.mean()) * (g == s))) for s in set(g))


def cov_n(f, h):
    return np.mean((f - f.mean()) * h)


def root_hsic_n(k, l):
    n = len(k)
    h = np.eye(n) - 1 / n
    return math.sqrt(max(np.trace(h @ k @ h @ l), 0)) / n


def product(p, f, h):
    x = (f - p @ f) * (h - p @ h)
    return p @ x**2 - (p @ x) ** 2


def v(V, m):
    r = V / m
    return 4 * V * (1 - r) ** 2 if 2 * (1 - r) ** 2 >= 1 else m / (2 - r)


coin = np.array([[0.5, 0.0], [0.0, 0.5]])
bit = np.array([0.0, 1.0])

# Sign_functions
h = np.array([-2.0, 2.0])
show(
    "gdp_signs, |h| <= 2",
    sum(coin[z, s] * (bit[z] - 0.5) * h[s] for z in (0, 1) for s in (0, 1)),
    gdp(coin, bit),
)
f, f2, g = np.array([1.0, 0.0]), np.array([0.0, 0.0]), np.array([1, 0])
show("gdp_n_change, (n-1)/n^2", abs(gdp_n(f, g) - gdp_n(f2, g)), 1 / 4)
grid = np.linspace(0, 1, 11)
largest = max(
    2 * gdp_n(np.array(a), np.array(b))
    for a in itertools.product(grid, repeat=2)
    for b in itertools.product((0, 1), repeat=2)
)
show("gdp_change_attained, 2/(n-1)", 2 / 1, largest)
show(
    "signed_change, 1/n",
    2 * abs(cov_n(f, np.array([1.0, -1.0])) - cov_n(f2, np.array([1.0, -1.0]))),
    1 / 2,
)


def coverage(slack, stat, truth, n):
    """Return the probability of truth <= stat + slack for n rows of the fair coin with Z = S."""
    return sum(
        0.5**n
        for w in itertools.product((0, 1), repeat=n)
        if truth <= stat(np.array(w)) + slack + 1e-12
    )


level = 0.7
show(
    "signs_confidence, level/(2n)",
    1 - math.exp(-level),
    coverage(math.sqrt(level / 4), lambda w: 2 * gdp_n(w * 1.0, w), 0.5, 2),
)

# Variance_of_product
p, f, h = np.array([0.05, 0.9, 0.05]), np.array([0, 0.5, 1]), np.array([-1.0, 1, -1])
show("product_variance_unit, Var f", product(p, f, h), p @ (f - p @ f) ** 2)
p4, f4, h4 = np.array([0.25] * 4), np.array([0.0, 1, 0, 1]), np.array([-1.0, -1, 1, 1])
show("var_max, m/2", product(p4, f4, h4), 0.25 / 2)
p5 = np.array([1 / 6, 1 / 6, 1 / 12, 1 / 12, 1 / 2])
f5, h5 = np.array([0, 1, 0, 1, 0.5]), np.array([-1.0, -1, 1, 1, 1])
V5 = p5 @ (f5 - 0.5) ** 2
assert abs(V5 / 0.25 - 0.5) < 1e-12
show("var_max, first case up to 1/2", product(p5, f5, h5), 4 * V5 * (1 - 0.5) ** 2)
a, fb, hb = np.array([0.9, 0.1]), bit, np.array([1.0, -1.0])
show("far_square, a(1-a)", product(a, fb, hb), v(0.09, 0.09))
half, hc = np.array([0.5, 0.5]), np.array([-1.0, 1.0])
uncentred = (bit - 0.5) * hc
show(
    "sign_variance, plus",
    0.25 + (half @ (bit * hc) - 0.5 * (half @ hc)) ** 2,
    half @ uncentred**2 - (half @ uncentred) ** 2,
)
show("var_max_le4, 3 V", v(0.01, 1), 3 * 0.01)
level, n, q = 3.0, 2000, 0.2
slack = 5 * level / (3 * n)
log_weight = [
    math.lgamma(n + 1)
    - math.lgamma(k + 1)
    - math.lgamma(n - k + 1)
    + k * math.log(q)
    + (n - k) * math.log(1 - q)
    for k in range(n + 1)
]
held = sum(
    math.exp(w)
    for k, w in enumerate(log_weight)
    if 2 * q * (1 - q) <= 2 * k / n * (1 - k / n) + slack
)
show("gdp_confidence_product, no root", 1 - 5 * math.exp(-level), held)

# Empirical_variance
level = 2.0
show("variance_confidence, V_n", 1 - 3 * math.exp(-level), float(0.25 <= 0.0))
show("var_max_mono, reversed", v(0.2, 1), v(0.1, 1))
level = 3.0
show("gdp_confidence_empirical, no root", 1 - 6 * math.exp(-level), held)

# Signed_difference
u, u2, w = 1.0, -1.0, -1.0
show("tensor_ball, 15", ((u - w) * (u - w) - (u2 - w) * (u2 - w)) ** 2, 15)
for n in (2, 5, 50):
    x = np.array([1.0] + [-1.0] * (n - 1))
    k, k2 = np.outer(x, x), np.ones((n, n))
    change = n / (n - 1) * abs(root_hsic_n(k, k) - root_hsic_n(k2, k2))
    assert abs(change - 4 / n) < 1e-9
show("root_change_sharp, 15", 50 * change, math.sqrt(15))
show("sharp_attained, 5/n", 5, 50 * change)


def root_law(p):
    """Return the root of HSIC for the kernel 1[x = y] on three values and the law p of a sample."""
    return math.sqrt(((p - np.outer(p.sum(1), p.sum(0))) ** 2).sum())


# Most rows are (2, 2). Rows (1, 2) and (2, 1) make the covariance of the value 1 negative, and rows
# (0, 0) make that of the value 0 positive.
n, few = 10**6, 20000
counts = np.zeros((3, 3))
counts[1, 2] = counts[2, 1] = few
counts[0, 0] = few * few // n
counts[2, 2] = n - 1 - counts.sum()
before, after = counts.copy(), counts.copy()
before[0, 0] += 1
after[1, 1] += 1
change = n / (n - 1) * abs(root_law(before / n) - root_law(after / n))
show("root_change_diameter, 1 instead of 3/2", n * change, math.sqrt(1 * 2 * 2))


def x(w):
    return 2 * root_hsic_n(np.outer(2 * w - 1, 2 * w - 1), np.outer(2 * w - 1, 2 * w - 1))


level = 0.7
show(
    "hsic_confidence_sharp, 2", 1 - math.exp(-level), coverage(math.sqrt(2 * level / 2), x, 1.0, 2)
)
show(
    "hsic_confidence_diameter, 1/8",
    1 - math.exp(-level),
    coverage(math.sqrt(1 / 8 * 16 * level / 2), x, 1.0, 2),
)

# Ville
show("ville, c^2", 1 / 2, 1 / 2**2)
show("ville_confidence, 1/(2 delta)", 1 - 1 / 4, 1 / 2)
show("supermartingale, reversed", 1.0, 1 / 2)
level, lam = 0.7, 4 * math.sqrt(0.7)
show(
    "mean_anytime, 16",
    1 - math.exp(-level),
    sum(0.5 for y in (0, 1) if y + level / lam + lam / 16 >= 0.5),
)
lam = 1.0
show(
    "mean_anytime, weights up to 2",
    1 - math.exp(-level),
    sum(0.5 for y in (0, 1) if y + (level - math.log(2)) / lam + lam / 8 >= 0.5),
)
show(
    "mixture_anytime, half",
    1 - math.exp(-level),
    sum(0.5 for y in (0, 1) if math.exp(2 * (0.5 - y) - 4 / 8) < math.exp(level) / 2),
)


def alive(q, level, horizon):
    """Return the probability that the bound without a_n holds at all n, for Z = S with P(S = 1) = q."""
    truth, d = 2 * q * (1 - q), np.zeros(horizon + 2)
    d[0] = 1
    for t in range(1, horizon + 1):
        d[1 : t + 1] = d[1 : t + 1] * (1 - q) + d[:t] * q
        d[0] *= 1 - q
        if t > 1:
            k = np.arange(t + 1)
            d[: t + 1][
                truth > 2 * t / (t - 1) * (k / t) * (1 - k / t) + math.sqrt(2 * level / t)
            ] = 0
    return d.sum()


show("gdp_anytime, without a_n", 1 - math.exp(-0.05), alive(0.15, 0.05, 4000))

# More wrong statements of the same theorems
signed = [
    sum(coin[z, s] * (bit[z] - 0.5) * e[s] for z in (0, 1) for s in (0, 1))
    for e in itertools.product((-1, 1), repeat=2)
]
show("gdp_signs, twice", min(abs(gdp(coin, bit) - 2 * c) for c in signed), 0)
f, f2, g, h = np.array([1.0, 0.0]), np.array([0.0, 0.0]), np.array([1, 0]), np.array([1.0, -1.0])
show("gdp_n_signs, twice", 2 * cov_n(f, h), gdp_n(f, g))
show("gdp_n_signs, every", gdp_n(f, g), cov_n(f, np.ones(2)))
show("gdp_n_change, scores up to 2", abs(gdp_n(2 * f, g) - gdp_n(f2, g)), 2 / 4)
show("gdp_change_weak, n + 1", 2 * abs(gdp_n(f, g) - gdp_n(f2, g)), 2 / 3)
show("signed_change, |h| <= 2", 2 * abs(cov_n(f, 2 * h) - cov_n(f2, 2 * h)), 2 / 2)
level = 0.24
show(
    "signs_confidence, 4 level",
    1 - math.exp(-4 * level),
    coverage(math.sqrt(level), lambda w: 2 * gdp_n(w * 1.0, w), 0.5, 2),
)
show("product_variance, any V", product(p4, f4, h4), v(0.0, 0.25))
show("product_variance, |h| <= 2", product(p4, f4, 2 * h4), v(0.25, 0.25))
p3, f3, h3 = np.array([0.05, 0.9, 0.05]), np.array([0, 0.5, 1]), np.array([-1.0, 1, -1])
show("product_variance, any m", product(p3, f3, h3), v(0.025, 0.025))
show("var_max_lem, m/2", v(1.0, 1.0), 1 / 2)
show("product_variance_attained, 2 r", 2 * 1 * 0.25, 0.25)
show("sign_variance, h in [-1,1]", 0.25, 0.0)
level, n = 3.0, 2000
slack = 5 * level / (3 * n) + math.sqrt(2 * v(1e-9, 0.64) * level / n)
held = sum(
    math.exp(w)
    for k, w in enumerate(log_weight)
    if 2 * q * (1 - q) <= 2 * k / n * (1 - k / n) + slack
)
show("gdp_confidence_product, any V", 1 - 5 * math.exp(-level), held)
show("var_max_mono, smaller m", v(0.1, 1), v(0.1, 0.1))
up = (math.sqrt(0.25 + level / n) + math.sqrt(level / (2 * n))) ** 2
far = (1 + math.sqrt(level / (2 * n))) ** 2
show("variance_confidence, twice", 1 - 3 * math.exp(-level), float(up >= 2 * 0.25))
show(
    "gdp_confidence_empirical, twice",
    1 - 6 * math.exp(-level),
    float(0.5 + math.sqrt(2 * 4 * up * level / n) + 5 * level / (3 * n) >= 2 * 0.5),
)
show("tensor_ball, z outside", ((1 + 1) * (1 + 3) - 0) ** 2, 16)
show("cross_change_sharp, 15", ((1 - 0) - (1 - 1)) ** 2, 15 / 16)
corners = np.array([[0, 0], [1, 0], [0.5, math.sqrt(3) / 2]])


def cross(rows):
    return (
        (corners[rows] - corners[rows].mean(0)).T
        @ (corners[rows] - corners[rows].mean(0))
        / len(rows)
    )


show(
    "cross_change_diameter, 4/3", ((cross([0, 2]) - cross([1, 2])) ** 2).sum(), (1 / 4) ** 2 * 4 / 3
)
show("root_change_diameter, 5/4", 10**6 * change, math.sqrt(5 / 4 * 2 * 2))
show(
    "hsic_confidence_sharp, 4 level",
    1 - math.exp(-4 * 0.24),
    coverage(math.sqrt(8 * 0.24 / 2), x, 1.0, 2),
)
show(
    "hsic_confidence_diameter, 6 level",
    1 - math.exp(-6 * 0.16),
    coverage(math.sqrt(3 / 4 * 16 * 0.16 / 2), x, 1.0, 2),
)
show("ville, c < 0", 1.0, -1.0)
show("ville_confidence, start 2", 1 - 1 / 2, float(2 < 2))
show("supermartingale, negative", 1 / 2, 0 / 1)
show("ville_attained, N + 1", 1 / 2, 1 / 4)
level, lam = 0.7, 4 * math.sqrt(0.7)
show(
    "mean_stopped, 16",
    1 - math.exp(-level),
    sum(0.5 for y in (0, 1) if y + level / lam + lam / 16 >= 0.5),
)
fails = sum(
    1 / 8 for w in itertools.product((0, 1), repeat=3) if w[:2] == (1, 1) or w[:2] == (0, 1)
)
show("anytime_union, weights up to 2", 1 - 1 / 4, 1 - fails)
show(
    "gdp_anytime, 4 level",
    1 - math.exp(-4 * 0.24),
    coverage(math.sqrt(0.24), lambda w: 2 * gdp_n(w * 1.0, w), 0.5, 2),
)


def same(w):
    return 2 * root_hsic_n((w[:, None] == w) * 1.0, (w[:, None] == w) * 1.0)


show("hsic_anytime, 1/2", 1 - math.exp(-level), coverage(math.sqrt(level / 2 / 2), same, 0.5, 2))
show("hsic_anytime_signed, 2", 1 - math.exp(-level), coverage(math.sqrt(2 * level / 2), x, 1.0, 2))
unit = np.array([[math.cos(t), math.sin(t)] for t in (0, 2 * math.pi / 3, 4 * math.pi / 3)])


def mixed(rows):
    return (unit[rows] - unit[rows].mean(0)).T @ (corners[rows] - corners[rows].mean(0)) / len(rows)


show("cross_change_mixed, 4", ((mixed([0, 2]) - mixed([1, 2])) ** 2).sum(), (1 / 4) ** 2 * 4)
w = np.array([1] + [0] * 4)
linear, equal = np.outer(2 * w - 1, 2 * w - 1), (w[:, None] == w) * 1.0
show("root_change_mixed, 7/2", 5 * 5 / 4 * root_hsic_n(linear, equal), math.sqrt(7 / 2 * 2))


def both(w):
    return 2 * root_hsic_n(np.outer(2 * w - 1, 2 * w - 1), (w[:, None] == w) * 1.0)


show(
    "hsic_confidence_mixed, 1",
    1 - math.exp(-level),
    coverage(math.sqrt(level / 2), both, math.sqrt(0.5), 2),
)
show("var_max_root, 1/2", v(0.4, 1), 4 * 0.4 * 0.6**2)
# The files of the paper's statements -------------------------------------------------------------


def hsic(p, k, l):
    """Return HSIC of a law p[z, s]."""
    difference = p - np.outer(p.sum(1), p.sum(0))
    return np.einsum("zs,wt,zw,st->", difference, difference, k, l)


def expected_mmd2(p, k):
    """Return the mean over S of the squared MMD between the law of Z given S and the law of Z."""
    total = 0.0
    for s in range(p.shape[1]):
        gap = p[:, s] / p[:, s].sum() - p.sum(1)
        total += p[:, s].sum() * gap @ k @ gap
    return total


def expected_mmd(p, k):
    """Return the mean over S of the MMD."""
    total = 0.0
    for s in range(p.shape[1]):
        gap = p[:, s] / p[:, s].sum() - p.sum(1)
        total += p[:, s].sum() * math.sqrt(gap @ k @ gap)
    return total


equal, signs = np.eye(2), np.array([[1.0, -1.0], [-1.0, 1.0]])
show("form_cauchy_schwarz, twice", 2 * 1.0, 1.0)
show("coin_hsic, 1/5", hsic(coin, equal, equal), 1 / 5)
show("hsic_n_ge0, positive", 1e-6, root_hsic_n(np.ones((2, 2)), equal))
show("spectral_kernel, above one", 1.0, np.linalg.eigvalsh(np.array([[0.5]]))[0])
independent = np.full((2, 2), 0.25)
apart = np.abs(independent - np.outer(independent.sum(1), independent.sum(0))).sum()
show("equivalence, one", 1.0, apart)
ipm = np.abs(coin - np.outer(coin.sum(1), coin.sum(0))).sum()
conditional = [np.abs(coin[:, s] / 0.5 - coin.sum(1)).sum() for s in (0, 1)]
show("recovery, no weights", sum(conditional), ipm)
show("expected_mmd_bound, half", hsic(coin, equal, signs), 0.5 * expected_mmd(coin, equal) ** 2)
deviation = [coin[:, s] / 0.5 - coin.sum(1) for s in (0, 1)]
direction = 0.5 * (deviation[1] - deviation[0])
show("smoothed_control, no norm", (2 * direction) @ (2 * direction), hsic(coin, equal, signs))
show("one_point, no factor", (4 * direction) @ (4 * direction), hsic(coin, equal, 4 * signs))
show("upper_side, no tail", expected_mmd2(coin, equal), hsic(coin, equal, equal) / 10)
show("lower_side, no factor", hsic(coin, equal, 4 * equal), expected_mmd2(coin, equal))
show("parity_gap, no eigenvalue", gdp(coin, bit) ** 2, hsic(coin, equal, signs / 4))
two = np.eye(2) - 0.5
largest = np.linalg.eigvalsh(two @ equal @ two)[-1]
centered, norm = np.array([-0.5, 0.5]), 0.5
square = centered @ centered / 2
sampled = root_hsic_n(equal, equal) ** 2
show("finite_sample, HLH", square, norm / largest * sampled)
show("finite_sample_top, times", square, norm * (largest / 2) * sampled)
gap = 2.0
show("two_groups, no square", 0.25 * 2 * gap, hsic(coin, equal, equal))
show("two_groups, coincide", expected_mmd2(coin, equal), 0.25**2 * gap)
ridge_z, ridge_s = 0.01, 100.0
right = sampled / (ridge_z + ridge_s) * (0.25 + ridge_z * norm) * (0.25 + ridge_s * norm)
show("regularized_correlation, sum", 0.25**2, right)
constant = np.array([[0.5, 0.5], [0.0, 0.0]])
show("necessary, dependence", 1e-6, np.abs(constant - np.outer(constant.sum(1), [0.5, 0.5])).sum())
show("converse_fails, fair", max(abs((1 ^ u) - (0 ^ u)) for u in (0, 1)), 0)
before, after = np.array([1.0, -1.0]), np.array([1.0, 1.0])
old, new = np.outer(before, before), np.outer(after, after)
show("bounded_difference, 1", abs(root_hsic_n(old, old) ** 2 - root_hsic_n(new, new) ** 2), 1 / 2)
show("bracket_bound_nonnegative, half", abs(1 + 1 - 2 * 0), 1)
show("quarter, a fifth", sampled, 1 / 5)
show("hsic_zero, not characteristic", np.abs(coin - 0.25).max(), hsic(coin, equal, np.ones((2, 2))))
show("gdp_zero, one head", gdp(coin, bit), gdp(coin, 0 * bit))
show("root_change_nonnegative, 5", 10**6 * change, math.sqrt(5))
spread = np.array([1.0] + [-1.0] * 49)
step = 50 / 49 * root_hsic_n(np.outer(spread, spread), np.outer(spread, spread))
show("root_change_signed, 6", 50 * step, math.sqrt(6))
f, f2, g = np.array([1.0, 0.0]), np.array([0.0, 0.0]), np.array([1, 0])
show("gdp_change, 1/n", 2 * abs(gdp_n(f, g) - gdp_n(f2, g)), 1 / 2)
show("gdp_change, any score", 2 * abs(gdp_n(100 * f, g) - gdp_n(f, g)), 2 / 2)


def toss(slack):
    """Return the probability that 1/2 is at most one toss of a fair coin plus the slack."""
    return sum(0.5 for value in (0, 1) if value + slack >= 0.5)


delta = 0.49
show("cantelli, 5", 1 - delta, toss(math.sqrt((1 / delta - 1) / 5)))
pairs = [a + b for a, b in itertools.product((0, 1), repeat=2)]
show("variance_bound, no n", np.var(pairs), 1 / 4)


def root(w):
    return 2 * root_hsic_n((w[:, None] == w) * 1.0, (w[:, None] == w) * 1.0)


slack = math.sqrt(2 / 5 * (1 / delta - 1) / 2)
show("hsic_variance, 2/5", 1 - delta, coverage(slack, root, 0.5, 2))
show("hsic_plug_in, smaller", sampled + 1e-6, hsic(coin, equal, equal))
level = 0.7
show("mcdiarmid_confidence, 3", 1 - math.exp(-level), toss(math.sqrt(level / 3)))
show("hoeffding, 1/9", math.cosh(0.5), math.exp(1 / 9))
show("hsic_confidence, 1/2", 1 - math.exp(-level), coverage(math.sqrt(level / 4), root, 0.5, 2))


def twice(w):
    return 2 * gdp_n(w * 1.0, w)


short = coverage(math.sqrt(level / 4), twice, 0.5, 2)
show("gdp_confidence, 1/2", 1 - math.exp(-level), short)
show("gdp_confidence_real, 4n", 1 - math.exp(-level), short)
ten = coverage(math.sqrt(level), lambda w: 2 * gdp_n(10.0 * w, w), 5.0, 2)
show("gdp_confidence, no limit", 1 - math.exp(-level), ten)
show("prob_union, equality", 0.5 + 0.5, 0.5)
show("prob_chosen, no factor", 1 - 1 / 2, sum(0.5 for w in (0, 1) if w != w))
# The head that is 1 at the values with S = 1 outside of the sample has GDP >= 1/4 and GDP_n = 0.
show("gdp_confidence_candidates, no factor", 1 / 4, math.sqrt(2 * 1 / 33))
show("gdp_confidence_candidates_real, no factor", 1 / 4, math.sqrt(2 * 1 / 33))
# With a, b, c, d the shares of its table, the root of HSIC is 2|ad - bc| = a >= 1/4.
show("hsic_confidence_candidates_real, no factor", 1 / 4, math.sqrt(3 * 1 / 49))
covered = coverage(math.sqrt(2 * level / 2), x, 1.0, 2)
show("hsic_confidence_signed_candidates, 2", 1 - math.exp(-level), covered)
show("image_hsic, smaller", hsic(coin, equal, equal) + 1e-6, hsic(coin, equal, equal))
show("factor_needed, 2", math.sqrt(2 * 0.49), 1 / 2)
show(
    "gdp_mean, no factor",
    0.5,
    np.mean([gdp_n(np.array(w) * 1.0, np.array(w)) for w in itertools.product((0, 1), repeat=2)]),
)
show(
    "root_mean, no factor",
    0.5,
    np.mean([root(np.array(w)) / 2 for w in itertools.product((0, 1), repeat=2)]),
)


def binomial(n, q):
    """Return the probabilities of 0 to n successes."""
    k = np.arange(n + 1)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    logs = log_factorial[n] - log_factorial[k] - log_factorial[n - k]
    return np.exp(logs + k * math.log(q) + (n - k) * math.log(1 - q))


n, q, level = 100_000, 0.01, 9.0
k, chance = np.arange(n + 1), binomial(n, q)
held = chance[q <= k / n + math.sqrt(q * level / n)].sum()
show("bernstein, half", (1 - math.exp(-level)) * 1e6, held * 1e6)
q, level = 0.01, 4.7
held = sum(p for p, value in ((1 - q, 0.0), (q, -1.0)) if -q <= value + math.sqrt(2 * q * level))
show("bernstein, no largest", 1 - math.exp(-level), held)
show("bernstein, wrong side", 1 - math.exp(-level), held)
q, level = 0.05, 8.0
chance, variance = binomial(n, q), q * (1 - q)
estimate = 2 * k / n * (1 - k / n)
slack = math.sqrt(2 * variance * level / n) + 5 * level / (3 * n)
held = chance[2 * variance <= estimate + slack].sum()
show("gdp_confidence_variance, once", 1 - 5 * math.exp(-level), held)
delta = 0.05
slack = math.sqrt(4 * variance * math.log(5 / delta) / (8 * n)) + 5 * math.log(5 / delta) / (3 * n)
held = chance[2 * variance <= estimate + slack].sum()
show("gdp_confidence_variance_real, a sixteenth", 1 - delta, held)
# Half of the rows have S = 1 and score 1. The others have score 0, but 500 with probability r.
n, rare, high, level = 1000, 5e-6, 500.0, 7.5
mean = 0.5 + rare * high
variance = 0.5 + rare * high**2 - mean**2
truth = 0.5 * (0.5 - rare * high) / 0.5
slack = math.sqrt(2 * 4 * variance * level / n) + 5 * level / (3 * n)
once = n * rare * (1 - rare) ** (n - 1)
ones, chance = np.arange(n), binomial(n - 1, 0.5 / (1 - rare))
share = ones / n
estimate = 2 * share * (1 - share) * np.abs(1 - high / (n - ones))
failed = once * chance[truth > estimate + slack].sum()
show("gdp_confidence_variance, no limit", failed, 5 * math.exp(-level))
print("all wrong statements have a counterexample")
