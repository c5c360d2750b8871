"""SciPy, where it computes with the namespace of what it is given."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

special = pytest.importorskip("scipy.special")
stats = pytest.importorskip("scipy.stats")
vq = pytest.importorskip("scipy.cluster.vq")
integrate = pytest.importorskip("scipy.integrate")
rotations = pytest.importorskip("scipy.spatial.transform")

FUNCTIONS = {
    "expit": special.expit,
    "logsumexp": lambda x: special.logsumexp(x, axis=1),
    "softmax": lambda x: special.softmax(x, axis=1),
    "log_softmax": lambda x: special.log_softmax(x, axis=0),
    "xlogy": lambda x: special.xlogy(x * x, x * x),
    "gammaln": lambda x: special.gammaln(x * x + 1),
    "zscore": stats.zscore,
    "skew": stats.skew,
    "kurtosis": stats.kurtosis,
    "moment": lambda x: stats.moment(x, 3),
    "gmean": lambda x: stats.gmean(x * x),
    "sem": stats.sem,
    "trim_mean": lambda x: stats.trim_mean(x, 0.1),
    "ttest_ind": lambda x: stats.ttest_ind(x, x * x).statistic,
    "pearsonr": lambda x: stats.pearsonr(x[:, 0], x[:, 1]).statistic,
    "normaltest": lambda x: stats.normaltest(x).pvalue,
    "whiten": vq.whiten,
    "vq": lambda x: vq.vq(x, x[:4])[0],
    "trapezoid": lambda x: integrate.trapezoid(x, axis=0),
    "rotations": lambda x: rotations.Rotation.from_rotvec(x).as_matrix(),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions(device, data, function):
    result = function(td.asarray(data))
    assert isinstance(result, td.Tensor)
    assert result.device is device
    np.testing.assert_allclose(result.numpy(), function(data), rtol=2e-3, atol=2e-5)
