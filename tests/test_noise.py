"""Noise, as a whole run sees it: found out, said or told; and what is then the best."""

import dataclasses
import math

import numpy as np
import pytest

import brute_force
import cylbo
from cylbo.model.beliefs import Form
from cylbo.search import suggest as suggest_room

PLAIN = dataclasses.replace(cylbo.DEFAULT, n_sobol=128, n_spray=40, max_steps=20, fit_steps=15, forms=(Form(),))
# Where only the bookkeeping matters
TINY = dataclasses.replace(PLAIN, n_sobol=8, n_spray=1, max_steps=1, fit_steps=3, warm_steps=1)
BOX = [(-1.0, 1.0)] * 2
NAN = math.nan


def bowl(x):
    return float(((np.asarray(x) - 0.3) ** 2).sum())


def ripples(x):
    """As rough as noise to any process, and exact."""
    return bowl(x) + 0.1 * float(np.sin(50.0 * np.asarray(x)).sum())


class Noisy:
    """The bowl with noise that a seed decides on."""

    def __init__(self, sd=0.2, seed=0):
        self.sd, self.rng = sd, np.random.default_rng(seed)

    def __call__(self, x):
        return bowl(x) + self.sd * float(self.rng.standard_normal())


def make(seed=0, method=PLAIN, **options):
    return cylbo.Optimizer(BOX, seed=seed, method=method, **options)


def begun(fun, seed=0, n=29, **options):
    """A run that begins with so many evaluations made elsewhere."""
    x0 = np.random.default_rng(1000 + seed).uniform(-1.0, 1.0, (n, 2))
    return make(seed, x0=x0, y0=[fun(x) for x in x0], **options)


def played(opt, n, fun, **told):
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, fun(trial.x), **told)
    return opt


def repeated(opt):
    return [trial for trial in opt.trials if trial.origin == "repeated"]


def arrays(opt):
    """Points, values and told noise of what is done."""
    done = opt.history.of("done")
    return tuple(np.array([getattr(trial, name) for trial in done]) for name in ("x", "value", "std"))


def naively_expected(opt):
    """At every evaluated point, with the hyperparameters of the last fit and formulas of our own."""
    state, (x, y, std) = opt._memory.state, arrays(opt)
    sign = opt.history.sign
    return sign * brute_force.expected_values(
        state.thetas[Form()], x, sign * y, std if np.isfinite(std).any() else None
    )


def check_best_is_what_is_expected_most(opt):
    best, fun = opt.recommended()
    expected = naively_expected(opt)
    least = (opt.history.sign * expected).argmin()
    assert fun == pytest.approx(expected[least], rel=1e-5, abs=1e-5)
    assert np.array_equal(best.x, arrays(opt)[0][least])
    assert opt.best is best


# ---- found out


def test_an_exact_function_with_ripples_has_one_point_evaluated_twice_and_never_again():
    counts = []
    for seed in range(3):
        opt = played(begun(ripples, seed), 20, ripples)
        again = repeated(opt)
        counts.append(len(again))
        for trial in again:
            earlier = [t for t in opt.trials[: trial.id] if np.array_equal(t.x, trial.x)]
            assert len(earlier) == 1
            assert trial.value == earlier[0].value == min(t.value for t in opt.trials[: trial.id])  # the best then
        assert opt.best.value == opt.recommended()[1] == min(t.value for t in opt.trials)
    assert max(counts) == 1  # catches: nothing to be seen here


def test_a_noisy_function_is_found_out_and_good_points_are_evaluated_again():
    fun = Noisy()
    opt = begun(fun)
    while not repeated(opt):
        assert not opt._known().settled
        assert opt.recommended()[1] == opt.best.value == arrays(opt)[1].min()
        played(opt, 1, fun)
        assert len(opt.trials) < 45
    assert opt._known().settled
    assert opt._known().noisy
    played(opt, 15, fun)
    check_best_is_what_is_expected_most(opt)
    again = repeated(opt)
    assert len(again) > 2
    assert np.mean([bowl(trial.x) for trial in again]) < 0.3  # of all points it is 0.85
    assert bowl(opt.best.x) < 0.1


def test_where_there_is_no_room_for_all_data_good_points_are_evaluated_again_all_the_same():
    # catches: the place of a point among the data there is room for, taken for its place among all
    opt = played(begun(Noisy(), n=90, noisy=True, max_memory=1e5), 16, Noisy(seed=1))
    values = {trial.x.tobytes(): bowl(trial.x) for trial in opt.trials}
    again = repeated(opt)
    assert len(again) > 1
    for trial in again:
        assert any(np.array_equal(trial.x, earlier.x) for earlier in opt.trials[: trial.id])
        assert bowl(trial.x) < np.quantile(list(values.values()), 0.25)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_best_of_a_noisy_function_is_not_the_luckiest(direction):
    # one value is far better than its neighbours, which lie around it and agree
    sign = 1.0 if direction == "minimize" else -1.0
    x0 = np.random.default_rng(3).uniform(-1.0, 1.0, (40, 2))
    y0 = sign * np.array([bowl(x) + 0.02 * math.sin(1000.0 * x[0]) for x in x0])
    lucky = int(np.abs(x0 - [-0.8, -0.8]).sum(-1).argmin())
    y0[lucky] = sign * -0.2
    opt = make(x0=x0, y0=y0, direction=direction, noisy=True)
    assert opt.best.id != lucky  # before anything was suggested, too
    played(opt, 3, lambda x: sign * bowl(x))
    assert (sign * arrays(opt)[1]).argmin() == lucky
    assert opt.best.id != lucky
    assert bowl(opt.best.x) < 0.1
    check_best_is_what_is_expected_most(opt)
    exact = make(x0=x0, y0=y0, direction=direction, noisy=False)
    assert played(exact, 3, lambda x: sign * bowl(x)).best.id == lucky


def test_among_few_choices_the_best_is_not_the_luckiest_either():
    # All of them are asked for before there is a model
    space = cylbo.Space(a=cylbo.Boolean(), b=cylbo.Integer(0, 5))
    rng = np.random.default_rng(2)
    fun = lambda p: 0.5 * (p["a"] + p["b"]) + rng.standard_normal()  # noqa: E731
    result = cylbo.minimize(fun, space, budget=50, seed=0, noisy=True)
    luckiest = space.params(result.x_iters[result.func_vals.argmin()])
    assert result.nfev == 12
    assert result.params == {"a": False, "b": 0} != luckiest
    assert result.fun > result.func_vals.min() + 1.0


# ---- said


def test_whoever_says_that_there_is_noise_gets_points_evaluated_again_from_the_start():
    opt = played(make(noisy=True), 25, Noisy(sd=1.0))
    assert repeated(opt)
    assert repeated(opt)[0].id < 25  # long before it could have been found out
    check_best_is_what_is_expected_most(opt)


def test_whoever_says_that_there_is_none_gets_no_point_twice():
    opt = played(begun(Noisy(), noisy=False), 12, Noisy(seed=1))
    assert not repeated(opt)
    assert len({trial.x.tobytes() for trial in opt.trials}) == len(opt.trials)
    assert opt.best.value == opt.recommended()[1] == arrays(opt)[1].min()


@pytest.mark.parametrize("name", ["cylinder", "paper", "default"])
def test_methods_that_never_repeat_do_so_whatever_is_said(name):
    least = {"n_sobol": 32, "sweeps": 1, "first_sweeps": 1, "max_steps": 2}
    method = dataclasses.replace(cylbo.METHODS[name], **least, repeats=False)
    opt = played(make(method=method, noisy=True), 6, Noisy(sd=1.0))
    assert not repeated(opt)
    assert opt.best.value == opt.recommended()[1] == arrays(opt)[1].min()


@pytest.mark.parametrize("noisy", [1, 0, "yes", 0.1])
def test_noisy_is_true_false_or_none(noisy, tmp_path):
    path = tmp_path / "run.db"
    for call in (make, lambda **options: cylbo.minimize(bowl, BOX, budget=1, **options)):
        with pytest.raises(TypeError, match="noisy must be True, False or None, got"):
            call(noisy=noisy, storage=path)
    assert not path.exists()


def test_a_stored_run_is_gone_on_with_as_noisy_as_it_was(tmp_path):
    path = tmp_path / "run.db"
    make(noisy=True, storage=path).close()
    with pytest.raises(cylbo.StorageError, match="another noisy: true, not false"):
        make(noisy=False, storage=path, resume=True)
    for noisy in (None, True):
        with make(noisy=noisy, storage=path, resume=True) as opt:
            assert opt.noisy
            assert opt._known().noisy


# ---- told


def test_told_noise_counts_in_what_a_repeat_is_worth():
    """A value that is known to be noisy tells as little again where the noise is told as where it is inferred."""
    x0 = np.random.default_rng(0).uniform(-1.0, 1.0, (30, 2))
    opt = make()
    for x in x0:
        trial = opt.history.keep(opt._new(x, origin="told"))
        opt.tell(trial, bowl(x) + 0.3 * math.sin(1e5 * x[0]), std=0.3)
    known = opt._known()
    learned = cylbo.DEFAULT.learn(known, opt.frame.domain, None, cylbo.DEFAULT, np.random.default_rng(0))
    model = suggest_room._Model(known, learned, [], opt.frame.domain, cylbo.DEFAULT)
    told = float(np.median(learned.noise) * learned.h.amplitude[0])
    assert model.observed >= told > 0.0
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suggest_room, "knowledge_gradient", lambda gp, x, noise: seen.append(noise) or np.zeros(len(x)))
        model.more_telling(np.zeros(2))
    assert seen == [model.observed]


@pytest.mark.parametrize(("again", "noisy"), [(1.0, False), (1.5, True)])
def test_earlier_evaluations_of_one_point_say_whether_there_is_noise(again, noisy):
    x0 = [[0.1, 0.2], [0.5, -0.5], [0.1, 0.2], [-0.7, 0.3]]
    opt = make(x0=x0, y0=[1.0, 2.0, again, 3.0])
    assert opt._known().settled
    assert opt._known().noisy == noisy
    played(opt, 4, bowl)
    if noisy:
        check_best_is_what_is_expected_most(opt)
    else:
        assert opt.best.value == opt.recommended()[1] == arrays(opt)[1].min()


def test_told_noise_makes_a_lucky_value_no_best():
    opt = make()
    for i in range(14):
        trial = opt.ask()
        lucky = i == 3
        opt.tell(trial, -1.0 if lucky else bowl(trial.x), std=2.0 if lucky else 0.01)
        assert trial.origin in ("center", "random", "model", "repeated")
    assert opt._memory.state.told_noise
    assert opt.history.best.id == 3
    assert opt.best.id != 3
    check_best_is_what_is_expected_most(opt)


def test_told_noise_of_some_values_is_none_of_the_others():
    opt = make(x0=[[0.1, 0.2], [0.5, -0.5]], y0=[1.0, 2.0])
    for i in range(10):
        opt.tell(opt.ask(), bowl(opt.trials[-1].x), std=0.3 if i % 2 else None)
    np.testing.assert_array_equal(arrays(opt)[2], [NAN, NAN, *[NAN, 0.3] * 5])
    check_best_is_what_is_expected_most(opt)


@pytest.mark.parametrize("std", [0, 0.0, np.float32(0.0), np.array(0.0)])
def test_told_noise_of_zero_is_none(std):
    opt = played(make(method=TINY), 6, bowl, std=std)
    assert [trial.std for trial in opt.trials] == [0.0] * 6
    assert type(opt.trials[0].std) is float
    assert opt._known().settled
    assert not opt._known().noisy
    assert opt.best.value == opt.recommended()[1] == arrays(opt)[1].min()


@pytest.mark.parametrize("std", [5e-324, 1e-200, 1e200, 1.7e308])
def test_told_noise_of_any_size_leaves_a_model(std):
    opt = played(make(method=TINY), 3, bowl)
    played(opt, 6, bowl, std=std)
    assert [trial.origin for trial in opt.trials[2:]].count("space-filling") == 0
    assert np.isfinite(opt.recommended()[1])


def test_the_best_of_noisy_values_keeps_every_constraint():
    opt = make(noisy=True)
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, bowl(trial.x), constraints=[float(trial.x[0])])  # better and not allowed right of 0
    expected = naively_expected(opt)
    allowed = arrays(opt)[0][:, 0] <= 0.0
    assert not allowed[expected.argmin()]
    assert opt.recommended()[1] == pytest.approx(expected[allowed].min(), rel=1e-5, abs=1e-5)
    assert opt.best.x[0] <= 0.0


# ---- whoever looks changes nothing


def test_what_is_the_best_does_not_depend_on_whether_someone_looked_before():
    looked_at, left_alone = (played(make(noisy=True), 12, Noisy(sd=0.5)) for _ in range(2))
    before = looked_at.recommended()
    for opt in (looked_at, left_alone):
        opt.ask()  # which fits anew
        check_best_is_what_is_expected_most(opt)
    assert looked_at.recommended() != before  # else it would not have mattered
    assert looked_at.recommended()[1] == left_alone.recommended()[1]


def test_minimize_and_load_give_the_best_that_is_expected(tmp_path):
    path = tmp_path / "run.db"
    config = cylbo.DEFAULT
    result = cylbo.minimize(Noisy(sd=0.5), BOX, budget=14, seed=0, noisy=True, method=config, storage=path)
    opt = played(cylbo.Optimizer(BOX, seed=0, noisy=True, method=config), 14, Noisy(sd=0.5))
    loaded = cylbo.load(path)
    best, fun = opt.recommended()
    assert fun != best.value
    for each in (result, loaded):
        assert each.fun == fun
        assert np.array_equal(each.x, best.x)
        assert [t.origin for t in each.trials] == [t.origin for t in opt.trials]


@pytest.mark.parametrize("told", [False, True])
def test_a_noisy_run_resumed_after_every_evaluation_is_the_run_left_alone(tmp_path, told):
    path = tmp_path / "run.db"
    more = {"std": 0.5} if told else {}
    calm = played(make(noisy=True), 12, Noisy(sd=0.5), **more)
    fun = Noisy(sd=0.5)
    for _ in range(12):
        with make(noisy=True, storage=path, resume=True) as opt:
            opt.tell(opt.ask(), fun(opt.trials[-1].x), **more)
            recommended = opt.recommended()
    assert [t.x.tobytes() for t in opt.trials] == [t.x.tobytes() for t in calm.trials]
    assert [t.origin for t in opt.trials] == [t.origin for t in calm.trials]
    assert recommended[1] == calm.recommended()[1]
    assert recommended[0].id == calm.best.id


# ---- discrete spaces


def test_all_points_of_a_small_space_may_be_evaluated_again_until_each_was_once():
    space = cylbo.Space(k=cylbo.Integer(0, 3), c=cylbo.Categorical(["a", "b", "c"]))
    opt = cylbo.Optimizer(space, seed=0, method=TINY, noisy=True)
    fun = Noisy(sd=1.0)
    for _ in range(60):
        try:
            trial = opt.ask()
        except cylbo.SpaceExhaustedError:
            break
        opt.tell(trial, trial.params["k"] / 3.0 + fun([0.3, 0.3]))
    points = {tuple(sorted(trial.params.items())) for trial in opt.trials}
    assert len(points) <= 12
    if len(opt.trials) < 60:
        assert len(points) == 12
    for trial in repeated(opt):
        assert any(trial.params == earlier.params for earlier in opt.trials[: trial.id])
