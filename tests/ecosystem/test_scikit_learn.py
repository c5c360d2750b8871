"""scikit-learn with array_api_dispatch, where it needs no decompositions."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

sklearn = pytest.importorskip("sklearn")
metrics = pytest.importorskip("sklearn.metrics")
pairwise = pytest.importorskip("sklearn.metrics.pairwise")
preprocessing = pytest.importorskip("sklearn.preprocessing")


@pytest.fixture(autouse=True)
def dispatch():
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.mark.parametrize("name", ["StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer"])
def test_scalers(device, data, name):
    make = getattr(preprocessing, name)
    scaler = make().fit(td.asarray(data))
    result = scaler.transform(td.asarray(data))
    assert isinstance(result, td.Tensor)
    assert result.device is device
    np.testing.assert_allclose(result.numpy(), make().fit_transform(data), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["cosine_similarity", "euclidean_distances", "rbf_kernel"])
def test_pairwise(device, data, name):
    function = getattr(pairwise, name)
    result = function(td.asarray(data), td.asarray(data[:5]))
    assert isinstance(result, td.Tensor)
    np.testing.assert_allclose(result.numpy(), function(data, data[:5]), rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["mean_squared_error", "mean_absolute_error", "r2_score"])
def test_metrics_of_regressions(device, data, name):
    function = getattr(metrics, name)
    result = function(td.asarray(data[:, 0]), td.asarray(data[:, 1]))
    assert result == pytest.approx(function(data[:, 0], data[:, 1]), rel=1e-4)


@pytest.mark.parametrize("name", ["accuracy_score", "zero_one_loss", "f1_score"])
def test_metrics_of_classes(device, data, name):
    one, other = ((column > 0).astype(np.int32) for column in (data[:, 0], data[:, 1]))
    function = getattr(metrics, name)
    assert function(td.asarray(one), td.asarray(other)) == pytest.approx(function(one, other))
