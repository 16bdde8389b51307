r"""Upper bounds on dependence that hold with probability 1 − δ, from the sample to the population.

An estimate of GDP or HSIC can be too small by chance. The bounds of this package are at least as
large as the population value with probability 1 − ``delta``, for every distribution and every number
of rows, if the rows are independent draws and the scores (or the kernels) were fixed before these
rows were seen. Nothing else is assumed, and nothing is asymptotic.

**Covariances.** GDP over groups is the ℓ₁ norm of the covariances of the score with the indicators
of the groups, and √HSIC is the norm of the covariance operator. n/(n−1) times the sample version is
unbiased, so by Jensen's inequality its norm is on average at least the population's. One row changes
it by at most 2/n (GDP, scores in [0, 1]) and √6/n (HSIC, non-negative kernels with k(x, x) ≤ 1), and
McDiarmid's inequality bounds the rest.

**Variance.** An upper bound needs one direction only. With the signs ε of the true covariances,
GDP = Cov(f, ε(S)), while GDP_n is at least the sample covariance of f and ε(S). This is a mean of
bounded variables, up to a product of two small means, and Bernstein's inequality bounds it by the
standard deviation of the scores. In the same way √HSIC is the mean of the covariance in one
direction, and the mean of (1 − k)(1 − l) over pairs of rows bounds its variance.
"""

from frhsic_core.bounds.features import Bounded
from frhsic_core.bounds.gdp import gdp_bound
from frhsic_core.bounds.heads import eipm_bound
from frhsic_core.bounds.hsic import hsic_bound
from frhsic_core.bounds.result import DependenceBound

__all__ = ["Bounded", "DependenceBound", "eipm_bound", "gdp_bound", "hsic_bound"]
