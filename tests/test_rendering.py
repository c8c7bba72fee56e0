"""What people see of trials, spaces, reports and optimizers, in a terminal, in a notebook and in `help()`."""

import dataclasses
import inspect
import pydoc
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.cells import cell_len

import cylbo
from cylbo import Boolean, Categorical, Health, Integer, Real, Space, Trial
from cylbo.rendering import (
    aligned,
    cut,
    described_optimizer,
    html_table,
    one_line,
    shown,
    shown_list,
)

OURS = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
EVIL = "</td><script>alert(\"x\")</script><img src=x onerror='y'>&lt;b&gt;"
INVISIBLE = "\u202e\x1b[31m\r\0\ud800"


class Cells(HTMLParser):
    """The tags of a page, each closed in its turn, the attributes and the rows of text."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.rows, self.open = set(), set(), [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= set(attrs)
        self.open.append(tag)
        if tag in ("tr", "caption"):
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] == "caption":
            self.rows[-1].append(data)
        else:
            assert self.open[-1] in ("th", "td")
            self.rows[-1][-1] += data

    def handle_comment(self, data):
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def rows_of(page):
    """The rows of text of a page that holds nothing but plain tables, in no colour."""
    cells = Cells(page)
    assert cells.tags <= OURS
    assert cells.attributes <= {("style", "text-align: left")}
    assert all(cell.isprintable() for row in cells.rows for cell in row)
    return cells.rows


def trial(params=None, **fields):
    x = np.zeros(2) if params is None else np.zeros(len(params))
    return Trial(7, x, **{"to_params": None if params is None else lambda _: params} | fields)


def health(**fields):
    """A report; what is not given is 0 or empty."""
    return Health(**{field.name: 0 for field in dataclasses.fields(Health)} | {"origin": "", "warnings": ()} | fields)


# ---- values


@pytest.mark.parametrize("value", [0.1, 1 / 3, -2e-300, 123456789.0, 1e22, -0.0, float("nan"), float("inf")])
def test_a_float_has_six_significant_digits(value):
    assert shown(value) == f"{value:.6g}"
    assert shown(np.array([value])) == f"[{value:.6g}]"


@pytest.mark.parametrize("value", [True, None, 3, -(2**53), "relu", "1", ""])
def test_what_is_no_float_is_shown_as_python_writes_it(value):
    assert shown(value) == repr(value)


def test_a_small_array_is_shown_whole_and_a_large_one_by_its_shape_and_range():
    assert shown(np.array([[0.5, 1 / 3], [2.0, -1.0]])) == "[[0.5, 0.333333], [2, -1]]"
    large = np.linspace(-1.0, 2 / 3, 100).reshape(10, 10)
    assert shown(large) == "<shape (10, 10), from -1 to 0.666667>"
    assert shown(np.arange(10**6)) == "<shape (1000000,), from 0 to 999999>"


def test_a_long_string_is_cut():
    assert shown("x" * 1000) == "'" + "x" * 44 + "..."
    assert [cut("abcdef", most) for most in (6, 5)] == ["abcdef", "ab..."]


def test_a_number_that_python_does_not_spell_is_shown_all_the_same():
    assert "cannot be shown" in shown(10**5000)


def test_of_many_choices_the_first_are_shown_and_the_others_counted():
    assert shown_list(["a", 1, None]) == "'a', 1, None"
    assert shown_list(range(10)) == "0, 1, 2, 3, 4, 5, ... and 4 more"


def test_text_of_several_lines_becomes_one_that_can_be_seen():
    line = one_line(f"why\n\n  so {INVISIBLE}", 100)
    assert line.startswith("why so ")
    assert line.isprintable()
    assert one_line("word " * 10**5, 20) == "word word word wo..."


def test_columns_are_aligned_also_under_wide_letters():
    lines = aligned([("ab", "1"), ("日本", "2"), ("é\u0301", "3\n4")]).split("\n")
    assert len({cell_len(line) for line in lines}) == 1


# ---- trials


def test_a_trial_shows_up_to_six_parameters_and_counts_more():
    assert "params={'lr': 0.333333, 'act': 'relu'}" in repr(trial({"lr": 1 / 3, "act": "relu"}))
    assert "params={'p0': 0, " in repr(trial({f"p{i}": i for i in range(6)}))
    assert "params=<7 parameters>" in repr(trial({f"p{i}": i for i in range(7)}))
    assert "x=[1, 2, 3, 4, 5, 6]" in repr(Trial(0, np.arange(1.0, 7.0)))
    assert "x=<1000 parameters>" in repr(Trial(0, np.zeros(1000)))
    assert "'w': <shape (10, 10), from 0 to 0>" in repr(trial({"w": np.zeros((10, 10))}))


def test_a_trial_shows_what_was_told_and_nothing_that_was_not():
    told = trial(value=0.25, status="done", std=0.1, constraints=(-1.0, 1 / 3), origin="model")
    assert repr(told) == "Trial(id=7, value=0.25, x=[0, 0], std=0.1, constraints=[-1, 0.333333], origin='model')"
    assert repr(trial()) == "Trial(id=7, status='open', x=[0, 0], origin='model')"


def test_a_failed_trial_says_why_on_one_short_line():
    text = repr(trial(status="failed", reason="ValueError: it's\n" + "so " * 10_000))
    assert "status='failed'" in text
    assert "ValueError: it's so so" in text
    assert "\n" not in text
    assert len(text) < 160


def test_names_that_do_not_end_do_not_fill_the_screen():
    text = repr(trial({f"{i}" + "n" * 1000: "v" * 1000 for i in range(6)}))
    assert len(text) < 600


def test_a_trial_in_a_notebook_is_a_table_of_what_is_known():
    rows = rows_of(trial({"lr": 0.5, "act": "relu"}, value=0.25, status="done", origin="random")._repr_html_())
    expected = [["id", "7"], ["status", "done"], ["value", "0.25"], ["origin", "random"]]
    assert rows == [*expected, ["trial.params"], ["lr", "0.5"], ["act", "'relu'"]]
    many = rows_of(Trial(0, np.zeros(20))._repr_html_())
    assert many[-1] == ["...", "and 14 more: trial.x"]


# ---- spaces


@pytest.mark.parametrize("n", [1, 6, 7, 13])
@pytest.mark.parametrize("name", ["p{}", "größe{}", "not an identifier {}", "{}\n<b>"])
def test_the_repr_of_a_space_of_few_parameters_can_be_evaluated(n, name):
    kinds = [
        Real(1e-5, 0.1, log=True),
        Integer(1, 9, shape=2, default=3),
        Categorical(["a", "b  c", None]),
        Boolean(),
    ]
    space = Space({name.format(i): kinds[i % 4] for i in range(n)})
    assert eval(repr(space)) == space
    lines = repr(space).split("\n")
    assert len(lines) == (1 if n <= 6 else n + 2)


@pytest.mark.parametrize("n", [14, 15, 100, 1000])
def test_the_repr_of_a_space_of_many_parameters_counts_those_in_the_middle(n):
    lines = repr(Space({f"p{i}": Real(0, 1) for i in range(n)})).split("\n")
    assert len(lines) == 15
    assert "p0=" in lines[1]
    assert f"p{n - 1}=" in lines[-2]
    assert f"{n - 12} more" in lines[7]


def test_a_parameter_with_much_to_say_is_cut_in_the_repr_of_a_space():
    space = Space(
        a=Real(0, 1),
        b=Categorical(range(10_000)),
        w=Real(0, 1, shape=100, default=np.linspace(0, 1, 100)),
    )
    lines = repr(space).split("\n")
    assert len(lines) == 5
    assert max(map(len, lines)) < 120


def test_a_space_in_a_notebook_has_a_row_per_parameter():
    space = Space(
        lr=Real(1e-5, 0.1, log=True), k=Integer(1, 12, default=3), act=Categorical(["a", 1, None]),
        w=Real(-1, 1, shape=(2, 2), default=0.5), b=Boolean(default=False),
    )  # fmt: skip
    assert rows_of(space._repr_html_()) == [
        ["name", "kind", "range or choices", "scale", "default", "shape"],
        ["lr", "Real", "1e-05 to 0.1", "log", "", ""],
        ["k", "Integer", "1 to 12", "", "3", ""],
        ["act", "Categorical", "'a', 1, None", "", "", ""],
        ["w", "Real", "-1 to 1", "", "[[0.5, 0.5], [0.5, 0.5]]", "(2, 2)"],
        ["b", "Boolean", "False, True", "", "False", ""],
    ]


@pytest.mark.parametrize(("n", "counted"), [(30, 0), (31, 1), (1000, 970)])
def test_a_notebook_shows_thirty_parameters_of_a_space_and_counts_the_others(n, counted):
    rows = rows_of(Space({f"p{i}": Boolean() for i in range(n)})._repr_html_())[1:]
    assert [row[0] for row in rows[:30]] == [f"p{i}" for i in range(30)]
    assert [row[:2] for row in rows[30:]] == [["...", f"and {counted} more"]] * bool(counted)


# ---- reports


def test_a_report_in_a_notebook_says_what_it_prints():
    report = health(
        evaluations=12,
        failed=1,
        noise=1 / 3,
        warnings=("values may be noise.", "widen the bounds."),
    )
    rows = rows_of(report._repr_html_())
    lines = str(report).splitlines()
    assert [f"{label:<17}{text}" for label, text in rows if label != "warning"] == lines[: len(rows) - 2]
    assert rows[-2:] == [["warning", "values may be noise."], ["warning", "widen the bounds."]]


# ---- optimizers


def test_an_optimizer_is_described_on_one_line():
    trials = [Trial(i, np.zeros(2), status=status) for i, status in enumerate(["done", "done", "failed", "open"])]
    best = Trial(1, np.zeros(2), 1 / 3, "done")
    counts = Counter(trial.status for trial in trials)
    assert described_optimizer(2, "default", "maximize", counts, best, "run.db") == (
        "<Optimizer: 2 parameters, method 'default', maximize; 2 done, 1 failed, 1 open; "
        "best value 0.333333 (trial 1); stored in run.db>"
    )
    assert described_optimizer(1, "paper", "minimize", {}, None, None) == (
        "<Optimizer: 1 parameter, method 'paper', minimize; no trials yet>"
    )
    assert "3 cancelled" in described_optimizer(1, "paper", "minimize", {"cancelled": 3}, None, None)


# ---- what comes from the user


def test_cells_of_a_table_hold_text_and_no_html():
    assert rows_of(html_table([(EVIL, EVIL)], (EVIL, "b"), EVIL)) == [
        [EVIL],
        [EVIL, "b"],
        [EVIL, EVIL],
    ]


@pytest.mark.parametrize("text", [EVIL, INVISIBLE, "<!-- ", "<![CDATA[", "a\n<br>", "x" * 10_000 + "<b>", "&", "']"])
def test_whatever_a_user_writes_is_no_html_and_no_control_character(text):
    params = {text: text, "w": 0.5}
    space = Space({text: Categorical([text, "other"], default=text), "b": Boolean()})
    report = health(origin=text, warnings=(text,))
    for shown_to_people in (
        trial(params),
        trial(params, status="failed", reason=text, origin=text),
        space,
        report,
    ):
        rows_of(shown_to_people._repr_html_())
        assert all(line.isprintable() for line in repr(shown_to_people).split("\n"))


# ---- help()


SIGNATURES = [
    cylbo.minimize, cylbo.load, cylbo.earlier, cylbo.Optimizer, cylbo.Optimizer.ask, cylbo.Optimizer.tell,
    cylbo.Optimizer.fail, cylbo.Real, cylbo.Integer, cylbo.Categorical, cylbo.Boolean, cylbo.Space, cylbo.Space.params,
    cylbo.Space.vector, cylbo.Result, cylbo.Result.to_csv, cylbo.Result.to_json, cylbo.Trial, cylbo.Health,
]  # fmt: skip


@pytest.mark.parametrize("thing", SIGNATURES, ids=lambda thing: thing.__qualname__)
def test_signatures_can_be_read(thing):
    text = str(inspect.signature(thing))
    assert "numpy" not in text
    assert "_SupportsArray" not in text
    assert len(text) < 1500
    assert text in pydoc.render_doc(thing, renderer=pydoc.plaintext)


@pytest.mark.parametrize("kind", [cylbo.Result, cylbo.Trial, cylbo.Health])
def test_help_explains_every_field_in_a_sentence(kind):
    section = inspect.getdoc(kind).split("Attributes:\n")[1]
    explained = dict(entry.split(": ", 1) for entry in section.replace("\n        ", " ").strip().splitlines())
    public = {field.name.lstrip("_") for field in dataclasses.fields(kind)}
    assert {name.strip() for name in explained} == public
    assert all(text.endswith(".") and text[0] in 'ABCDEFGHIJKLMNOPQRSTUVWXYZ"' for text in explained.values())
