"""BoTorch's default and SAASBO: one loop, two models."""

import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("botorch")

from cylbo.bench.methods import botorch, sobol  # noqa: E402
from cylbo.bench.methods.method import Method  # noqa: E402
from cylbo.bench.objective import Objective  # noqa: E402
from cylbo.model.scaling import standardized  # noqa: E402

OPTIMUM = np.linspace(-0.7, 0.7, 10)
SHORT_SAASBO = partial(botorch.search, fit=partial(botorch.saas, warmup=32, samples=32))


def bowl(x):
    return float(((x - OPTIMUM) ** 2).sum())


def run(function, budget, seed=0, search=botorch.search):
    objective = Objective(function, 10, budget)
    Method("", "", "", search).spend(objective, seed)
    return objective


def data(function, n, dim, seed=0):
    x = np.random.default_rng(seed).random((n, dim))
    y = -standardized(np.array([function(2 * p - 1) for p in x]))
    return torch.from_numpy(x), torch.from_numpy(y)[:, None]


@pytest.fixture
def quiet():
    """BoTorch's noise, which a run suppresses itself, for tests of its pieces."""
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        yield


def test_a_run_begins_at_the_centre_stays_in_the_box_and_beats_sobol():
    objective = run(bowl, 30)
    points = np.array(objective.points)
    assert (points[0] == 0).all()
    assert points.shape == (30, 10)
    assert (np.abs(points) <= 1).all()
    assert min(objective.values) < 0.5 * min(run(bowl, 30, search=sobol.search).values)


def test_the_initial_design_is_a_quarter_of_a_short_run_and_never_more_than_twenty():
    sizes = []

    def fit(x, y, last):
        sizes.append(len(x))
        raise KeyboardInterrupt

    for budget in (8, 24, 200):
        with pytest.raises(KeyboardInterrupt):
            botorch.search(Objective(bowl, 10, budget), 0, fit=fit)
    assert sizes == [2, 6, 20]


def test_the_model_has_the_dimension_scaled_prior_and_sees_standardised_negated_values(quiet):
    seen = []

    def fit(x, y, last):
        seen.append((x, y))
        return botorch.gaussian_process(x, y, last)

    objective = run(bowl, 9, search=partial(botorch.search, fit=fit))
    x, y = seen[-1]
    np.testing.assert_allclose(2 * x - 1, objective.points[:8], atol=1e-15)
    values = np.array(objective.values[:8])
    np.testing.assert_allclose(y[:, 0], (values.mean() - values) / values.std(ddof=1), rtol=1e-12)
    prior = botorch.gaussian_process(x, y, None).covar_module.lengthscale_prior
    assert prior.icdf(torch.tensor(0.5)).item() == pytest.approx(np.exp(np.sqrt(2)) * np.sqrt(10), rel=1e-5)


def test_the_maximiser_of_log_ei_is_not_worse_than_a_thousand_random_points(quiet):
    x, y = data(bowl, 15, 10)
    acquisition = botorch.log_ei(botorch.gaussian_process(x, y, None), y)
    point = torch.from_numpy(botorch.maximizer(acquisition, 10))
    with torch.no_grad():
        assert acquisition(point[None]) >= acquisition(torch.rand(1000, 1, 10, dtype=torch.float64)).max()


def test_a_failed_fit_keeps_the_hyperparameters_of_the_round_before(quiet, monkeypatch):
    from botorch.exceptions.errors import ModelFittingError

    x, y = data(bowl, 15, 10)
    last = botorch.gaussian_process(x[:-1], y[:-1], None)

    def failing(*_, **__):
        raise ModelFittingError

    monkeypatch.setattr("botorch.fit.fit_gpytorch_mll", failing)
    model = botorch.gaussian_process(x, y, last)
    assert len(model.train_targets) == 15
    torch.testing.assert_close(model.covar_module.lengthscale, last.covar_module.lengthscale)
    torch.testing.assert_close(model.likelihood.noise, last.likelihood.noise)
    assert botorch.gaussian_process(x, y, None).posterior(x).mean.isfinite().all()  # no round before


@pytest.mark.parametrize(
    "function",
    [lambda x: 3.0, lambda x: 1e300 * bowl(x), lambda x: float(bowl(x) > 3)],
    ids=["constant", "huge", "two values"],
)
def test_odd_values_do_not_end_the_run(function):
    assert len(run(function, 8).values) == 8


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_the_smallest_budgets_are_spent(budget):
    assert len(run(bowl, budget).values) == budget


def test_the_same_seed_gives_the_same_run_in_a_fresh_process_and_torchs_own_stream_is_left_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    values = run(lambda x: float(x @ x), 7, seed=5).values
    assert torch.equal(torch.rand(3), expected)
    program = (
        "from cylbo.bench.methods.botorch import METHODS; from cylbo.bench.objective import Objective\n"
        "objective = Objective(lambda x: float(x @ x), 10, 7); METHODS[0].spend(objective, 5)\n"
        "print([v.hex() for v in objective.values])"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([v.hex() for v in values])


def sparse(x):
    return float(np.sin(3 * x[2]) + 2 * x[7] ** 2)


@pytest.fixture(scope="module")
def sampled():
    """A SAAS model of 40 of 41 points; every chain costs seconds of JAX's compiler, whatever its length."""
    pytest.importorskip("numpyro")
    x, y = data(sparse, 41, 10)
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return x, y, botorch.saas(x[:40], y[:40], None, warmup=64, samples=64)


def test_saas_finds_the_two_coordinates_of_ten_that_matter(sampled):
    _, _, model = sampled
    assert set(model.median_lengthscale.argsort()[:2].tolist()) == {2, 7}
    assert model.pyro_model.train_X_jax.dtype == np.float64


def test_saas_conditions_the_last_samples_on_new_data_between_its_chains(sampled, quiet):
    x, y, last = sampled
    model = botorch.saas(x, y, last, warmup=64, samples=64)
    assert model.train_targets.shape[-1] == 41
    assert torch.equal(model.median_lengthscale, last.median_lengthscale)
    error = {m: (m.posterior(x[40:]).mean.mean() - y[40]).abs().item() for m in (model, last)}
    assert error[model] < 0.5 * error[last]


def test_saasbo_begins_at_the_centre_stays_in_the_box_and_beats_sobol():
    pytest.importorskip("numpyro")

    def two_of_ten(x):
        return float((x[2] + 0.5) ** 2 + (x[7] - 0.4) ** 2)

    objective = run(two_of_ten, 25, search=SHORT_SAASBO)
    assert (np.array(objective.points)[0] == 0).all()
    assert (np.abs(objective.points) <= 1).all()
    assert min(objective.values) < 0.5 * min(run(two_of_ten, 25, search=sobol.search).values)


def test_saasbo_survives_equal_values():
    pytest.importorskip("numpyro")
    assert len(run(lambda x: 3.0, 4, search=SHORT_SAASBO).values) == 4
