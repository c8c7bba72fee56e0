"""Arguments that fit no parameter: what the error says, and that everything else is as without the decorator."""

import inspect
import pickle
import traceback

import numpy as np
import pytest

import cylbo
from cylbo import Boolean, Categorical, Integer, Optimizer, Real, minimize
from cylbo.arguments import checked_arguments

BOX = [(-1.0, 1.0)] * 2


def refused(call, *arguments, **options):
    with pytest.raises(TypeError) as caught:
        call(*arguments, **options)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    return str(caught.value)


def bowl(x):
    return float(x @ x)


def opened():
    opt = Optimizer(BOX, seed=0)
    opt.ask()
    return opt


MISSPELT = {
    "minimize": (lambda **o: minimize(bowl, BOX, **o), "buget", "budget"),
    "Optimizer": (lambda **o: Optimizer(BOX, **o), "storag", "storage"),
    "Real": (lambda **o: Real(0, 1, **o), "logg", "log"),
    "Integer": (lambda **o: Integer(0, 1, **o), "defualt", "default"),
    "Categorical": (lambda **o: Categorical(["a", "b"], **o), "defaults", "default"),
    "Boolean": (lambda **o: Boolean(**o), "Default", "default"),
    "Optimizer.tell": (lambda **o: opened().tell(0, 1.0, **o), "constraint", "constraints"),
    "Optimizer.fail": (lambda **o: opened().fail(0, **o), "reasons", "reason"),
}


@pytest.mark.parametrize("name", MISSPELT)
def test_a_misspelt_name_is_told_the_nearest_one(name):
    call, wrong, right = MISSPELT[name]
    said = f"{name}() got an unexpected argument {wrong!r}; did you mean {right!r}?"
    assert refused(call, **{wrong: 1}) == said


def test_a_misspelt_name_of_an_argument_that_must_be_given_is_told_the_nearest_one_too():
    said = "minimize() got an unexpected argument 'bonds'; did you mean 'bounds'?"
    assert refused(minimize, bowl, bonds=BOX) == said


def test_an_argument_that_was_given_is_not_what_a_misspelt_name_means():
    for call in (lambda: Integer(0, high=1, heigh=2), lambda: Integer(0, 1, heigh=2)):
        assert "did you mean" not in refused(call)
    assert refused(Integer, 0, heigh=2).endswith("did you mean 'high'?")


def test_a_name_like_no_other_is_told_which_there_are():
    said = "Real() got an unexpected argument 'kind'; its arguments are low, high, log, shape, default."
    assert refused(Real, 0, 1, kind="log") == said
    assert refused(opened().ask, batch=2) == (
        "Optimizer.ask() got an unexpected argument 'batch'; its arguments are n."
    )
    names = list(inspect.signature(minimize).parameters)
    assert refused(minimize, bowl, BOX, iterations=3).endswith(f"its arguments are {', '.join(names)}.")


POSITIONS = {
    "minimize() expected fun and bounds by position, got 3 arguments; give options by name, e.g. budget=100.": (
        lambda: minimize(bowl, BOX, 100)
    ),
    "Optimizer() expected bounds by position, got 2 arguments; give options by name, e.g. seed=0.": (
        lambda: Optimizer(BOX, 0)
    ),
    "Real() expected low and high by position, got 3 arguments; give options by name: log, shape, default.": (
        lambda: Real(1, 2, np.ones(2))
    ),
    "Real() expected low and high by position, got 3 arguments; give options by name, e.g. log=True.": (
        lambda: Real(1, 2, True)
    ),
    "Integer() expected low and high by position, got 4 arguments; give options by name, e.g. log=3.": (
        lambda: Integer(1, 2, 3, 4)
    ),
    "Boolean() expected nothing by position, got 1 argument; give options by name, e.g. default=True.": (
        lambda: Boolean(True)
    ),
    "Categorical() expected choices by position, got 2 arguments; give options by name: default.": (
        lambda: Categorical(["a", "b"], "a")
    ),
    "Optimizer.tell() expected trial and value by position, got 3 arguments; give options by name, e.g. std=0.5.": (
        lambda: opened().tell(0, 1.0, 0.5)
    ),
    "Optimizer.fail() expected trial and reason by position, got 3 arguments; give options by name: metadata.": (
        lambda: opened().fail(0, "no", "mass")
    ),
    "Optimizer.ask() expected n by position, got 2 arguments; leave the rest out.": lambda: opened().ask(1, 2),
}


@pytest.mark.parametrize("said", POSITIONS)
def test_options_by_position_are_told_to_be_given_by_name(said):
    assert refused(POSITIONS[said]) == said


def test_choices_one_by_one_are_told_to_be_given_in_one_list():
    said = "Categorical() expected choices by position, got {} arguments; put the choices in one list: Categorical({})."
    for choices in (["relu", "gelu"], [1, 2, None], [0.5, True]):
        assert refused(Categorical, *choices) == said.format(len(choices), choices)
        assert Categorical(choices).choices == tuple(choices)


def test_what_was_refused_changed_nothing():
    opt = opened()
    for call in (lambda: opt.tell(0, 1.0, stdd=1.0), lambda: opt.tell(0, 1.0, 0.1), lambda: opt.ask(m=1)):
        refused(call)
    assert [trial.status for trial in opt.trials] == ["open"]


def test_what_is_missing_or_given_twice_is_pythons_to_say():
    assert "missing 1 required positional argument: 'bounds'" in refused(minimize, bowl)
    assert "multiple values for argument 'bounds'" in refused(Optimizer, BOX, bounds=BOX)


def test_an_error_of_the_function_itself_passes_as_it_is():
    raised = TypeError("f() got an unexpected keyword argument 'x'")

    @checked_arguments()
    def throw(a, *, option=0):
        raise raised

    with pytest.raises(TypeError) as caught:
        throw(1, option=2)
    assert caught.value is raised
    assert raised.__context__ is None
    with pytest.raises(TypeError) as caught:
        minimize(lambda x: throw(x), BOX, budget=1)
    assert caught.value is raised


def test_the_function_looks_as_it_was_written():
    parameters = inspect.signature(Optimizer).parameters
    assert list(parameters)[:2] == ["bounds", "seed"]
    assert parameters["seed"].kind is inspect.Parameter.KEYWORD_ONLY
    assert str(inspect.signature(Boolean)).startswith("(*, default: ")
    assert minimize.__name__ == "minimize"
    assert minimize.__doc__.startswith("Minimise an expensive function.")
    assert pickle.loads(pickle.dumps(minimize)) is minimize
    assert cylbo.minimize is minimize


def test_a_class_that_is_derived_may_take_more():
    class Half(Optimizer):
        def __init__(self, bounds, *, share=0.5, **options):
            super().__init__(bounds, **options)
            self.share = share

    assert Half(BOX, share=0.25, seed=3).seed == 3
    assert refused(lambda: Half(BOX, sed=3)).endswith("did you mean 'seed'?")


def test_the_traceback_ends_where_the_call_was_checked():
    with pytest.raises(TypeError) as caught:
        minimize(bowl, BOX, 100)
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 2
