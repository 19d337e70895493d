"""What every attack promises, held for every attack that the folder has."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, fields

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

import robagg.attacks
from robagg import MultiKrum
from robagg.attacks import attacks, parse
from robagg.attacks.base import Attack, Setup, State, View

TEXTS = [
    *attacks.classes(),
    "ga(variance=0.5)",
    "alie(z=1.5)",
    "alie(z=-1.5)",
    "alie(jitter=0.5)",
    "ipm(c0=1.0, jitter=0.12)",
    "ipm(c0=0.5)",
    "mimic(warmup=3)",
    "nonfinite(value='nan')",
    "nonfinite(value='-inf')",
    "signflip(scale=2.5)",
    "minmax(along='mean')",
    "minmax(along='sign', scale=2.0, jitter=0.5)",
    "minsum(along='mean')",
    "minsum(along='sign')",
    "heap(along='mean', jitter=0)",
    "heap(period=2)",
    "groups(groups=3)",
    "groups(groups=1)",
    "decoy(along='sign', decoys=2)",
    "clones(of='far')",
    "clones(of='centre')",
    "clones(count=2, of='rim', jitter=0)",
    "bf(scale=0.3, momentum=0.9)",
    "optimal(aim='far', jitter=0.5)",
    "optimal(aim='against', family='main')",
    "fang(against='krum')",
    "fang(reach=3.0)",
    "rop(distance=2.0, location=0.0, reference=0.5, angle=180.0)",
    "rop(jitter=0.5)",
    "scm(along='mean')",
    "sparse(z=0.2, scale=10.0, share=0.2)",
    "sparse(share=0.0)",
    "backdoor(target=3, share=0.2, scale=2.0, momentum=0.9)",
    "dba(parts=3)",
    "replacement(scale=4.0)",
    "neurotoxin(top=0.5, momentum=0.5)",
    "varying(attack='bf(momentum=0.5)', least=1)",
    "varying(attack='mixed')",
    "mixed(attacks='varying+fang+rop')",
    "mixed(attacks='optimal+minmax+bf(momentum=0.5)')",
    "mixed(attacks='lf+nonfinite+mimic(warmup=2)+bf')",
    "mixed(attacks='ga(variance=1e+20)+mixed(attacks=\"lf+alie(z=1.0)\")')",
]
FINITE = [text for text in TEXTS if "nonfinite" not in text]
SHAPES = [
    (1, 0, 1),
    (1, 1, 1),
    (1, 1, 5),
    (2, 1, 1),
    (2, 1, 4),
    (3, 0, 4),
    (14, 6, 9),
    (11, 9, 3),
    (3, 13, 2),
]  # h, f, d
RULE = MultiKrum()
"""What the rows will meet: an attack may try them on it."""
DTYPES = [torch.float32, torch.float64]


def seed(number: int) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def look(attack: Attack, h: int, f: int, d: int, dtype: torch.dtype = torch.float32, number: int = 0) -> View:
    """A round as the trainer shows it: gradients only for those who want one, the other rows NaN."""
    rows = torch.randn(h + f, d, generator=seed(number), dtype=dtype)
    wanted = [attack.wants_gradient(k) for k in range(f)]
    own = rows[h:].clone() if any(wanted) else None
    if own is not None:
        own[[not wants for wants in wanted]] = torch.nan
    return View(rows[:h].clone(), own, n=h + f, f=f, generator=seed(number + 1), rule=RULE)


def begin(attack: Attack, view: View, number: int = 7) -> State:
    d = view.honest.shape[1]
    return attack.start(Setup(view.n, view.f, d, dtype=view.honest.dtype, generator=seed(number)))


def assert_same(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)


def assert_same_state(a: State, b: State) -> None:
    assert a.keys() == b.keys()
    for key in a:
        assert_same(a[key], b[key])


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sends_f_rows_of_the_honest_kind(text: str, dtype: torch.dtype, shape: tuple[int, int, int]) -> None:
    attack = parse(text)
    view = look(attack, *shape, dtype)
    sent, _ = attack.craft(view, begin(attack, view))
    _, f, d = shape
    assert sent.shape == (f, d)
    assert sent.dtype == dtype
    assert sent.device == view.honest.device


@pytest.mark.parametrize("text", FINITE)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sends_finite_rows_and_reads_no_gradient_it_did_not_ask_for(text: str, shape: tuple[int, int, int]) -> None:
    attack = parse(text)
    view = look(attack, *shape)
    sent, state = attack.craft(view, begin(attack, view))
    assert sent.isfinite().all()
    assert all(value.isfinite().all() for value in state.values())


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=15, deadline=None)
@given(h=st.integers(1, 8), f=st.integers(0, 8), d=st.integers(1, 6), number=st.integers(0, 2**31))
def test_is_a_pure_function_of_view_state_and_generator(text: str, h: int, f: int, d: int, number: int) -> None:
    attack = parse(text)
    view, twin = (look(attack, h, f, d, number=number) for _ in range(2))
    state, state_before = begin(attack, view), begin(attack, view)
    sent, after = attack.craft(view, state)
    sent_again, after_again = parse(text).craft(twin, state)
    assert_same(sent, sent_again)
    assert_same_state(after, after_again)
    assert_same_state(state, state_before)
    fresh = look(attack, h, f, d, number=number)
    assert_same(view.honest, fresh.honest)
    if view.own is not None and fresh.own is not None:
        assert_same(view.own, fresh.own)


@pytest.mark.parametrize("text", TEXTS)
def test_state_keeps_names_shapes_and_dtypes(text: str) -> None:
    attack = parse(text)
    state = begin(attack, look(attack, 5, 4, 3))
    kinds = {key: (value.shape, value.dtype) for key, value in state.items()}
    for number in range(5):
        _, state = attack.craft(look(attack, 5, 4, 3, number=number), state)
        assert {key: (value.shape, value.dtype) for key, value in state.items()} == kinds


@pytest.mark.parametrize("text", TEXTS)
def test_state_is_all_that_is_remembered(text: str) -> None:
    attack = parse(text)
    start = begin(attack, look(attack, 5, 8, 3))
    _, state = attack.craft(look(attack, 5, 8, 3, number=1), start)
    carried, _ = attack.craft(look(attack, 5, 8, 3, number=2), state)
    elsewhere, _ = parse(text).craft(look(attack, 5, 8, 3, number=2), {k: v.clone() for k, v in state.items()})
    assert_same(carried, elsewhere)
    if not start:
        alone, _ = attack.craft(look(attack, 5, 8, 3, number=2), {})
        assert_same(carried, alone)


@pytest.mark.parametrize("text", TEXTS)
def test_knowing_the_round_changes_nothing(text: str) -> None:
    attack = parse(text)
    known = unknown = begin(attack, look(attack, 6, 8, 4))
    for number in range(5):
        view = look(attack, 6, 8, 4, number=number)
        sent, unknown = attack.craft(view, unknown)
        told = View(view.honest, view.own, view.n, view.f, seed(number + 1), round=number, rule=RULE)
        sent_told, known = attack.craft(told, known)
        assert_same(sent, sent_told)
        assert_same_state(known, unknown)


DRAWN = ("ga", "mixed", "fang", "varying")
"""Attacks that draw fresh numbers for each client in each round; `mixed` has GA among its parts."""


def draws(text: str) -> bool:
    return text in DRAWN or any(f"{name}(" in text for name in ("ga", "varying")) or "+fang" in text or "reach" in text


@pytest.mark.parametrize("text", [text for text in TEXTS if not draws(text)])
def test_a_sample_of_the_clients_sends_the_rows_it_would_send_among_all(text: str) -> None:
    attack = parse(text)
    view = look(attack, 5, 8, 3)
    sent, _ = attack.craft(view, begin(attack, view))
    some = (1, 2, 5, 6)
    own = None if view.own is None else view.own[list(some)]
    sent_by_some, _ = attack.craft(View(view.honest, own, view.n, view.f, clients=some, rule=RULE), begin(attack, view))
    assert_same(sent_by_some, sent[list(some)])


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 8, 3)], ids=str)
def test_asks_nothing_of_the_host(text: str, shape: tuple[int, int, int]) -> None:
    attack = parse(text)
    view = look(attack, *shape)
    state = begin(attack, view)
    with FakeTensorMode() as fake:
        own = None if view.own is None else fake.from_tensor(view.own)
        unreal = View(fake.from_tensor(view.honest), own, view.n, view.f, view.generator, rule=RULE)
        sent, after = attack.craft(unreal, {key: fake.from_tensor(value) for key, value in state.items()})
    assert sent.shape == shape[1:]
    assert after.keys() == state.keys()


def test_fake_tensors_catch_an_attack_that_asks_the_host() -> None:
    class Asks(Attack):
        def craft(self, view: View, state: State) -> tuple[Tensor, State]:
            return view.send(view.mean * view.mean.norm().item()), state

    with FakeTensorMode(), pytest.raises(DataDependentOutputException):
        Asks().craft(View(torch.ones(2, 2), None, n=3, f=1), {})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("text", TEXTS)
def test_a_captured_round_sends_what_an_eager_one_sends(text: str) -> None:
    attack = parse(text)
    here = look(attack, 14, 12, 1000)
    generator = torch.Generator("cuda")
    own = None if here.own is None else here.own.cuda()
    view = View(here.honest.cuda(), own, here.n, here.f, generator, rule=RULE)
    start = attack.start(Setup(here.n, here.f, 1000, "cuda", generator=generator.manual_seed(0)))
    generator.manual_seed(1)
    eager, state = attack.craft(View(view.honest, own, here.n, here.f, generator, rule=RULE), start)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        captured, captured_state = attack.craft(view, start)
    generator.manual_seed(1)
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(captured, eager, equal_nan=True)
    assert captured_state.keys() == state.keys()


@pytest.mark.parametrize("text", TEXTS)
def test_poison_keeps_shapes_and_leaves_the_data_alone(text: str) -> None:
    attack = parse(text)
    x, y = torch.randn(6, 2, 2, generator=seed(0)), torch.tensor([0, 1, 2, 3, 4, 4])
    for k in range(7):
        x_bad, y_bad = attack.poison(x, y, classes=5, k=k)
        assert x_bad.shape == x.shape
        assert y_bad.shape == y.shape
        assert y_bad.dtype == y.dtype
        assert ((y_bad >= 0) & (y_bad < 5)).all()
    assert_same(x, torch.randn(6, 2, 2, generator=seed(0)))
    assert y.tolist() == [0, 1, 2, 3, 4, 4]


@pytest.mark.parametrize("text", TEXTS)
def test_what_it_is_after_are_labels_for_test_samples(text: str) -> None:
    attack = parse(text)
    x, y = torch.randn(6, 2, 2, generator=seed(0)), torch.tensor([0, 1, 2, 3, 4, 4])
    goal = attack.goal(x, y, classes=5)
    assert (goal is None) == (not any(name in text for name in ("backdoor", "dba", "replacement", "neurotoxin")))
    if goal is not None:
        assert goal[0].shape[1:] == x.shape[1:]
        assert len(goal[0]) == len(goal[1]) > 0
        assert ((goal[1] >= 0) & (goal[1] < 5)).all()
    assert_same(x, torch.randn(6, 2, 2, generator=seed(0)))


@pytest.mark.parametrize("text", TEXTS)
def test_text_reads_back_to_an_equal_attack(text: str) -> None:
    attack = parse(text)
    assert parse(str(attack)) == attack
    assert hash(parse(str(attack))) == hash(attack)
    assert str(parse(str(attack))) == str(attack)


@pytest.mark.parametrize("name", attacks.classes())
def test_every_name_and_alias_finds_its_class(name: str) -> None:
    cls = attacks.classes()[name]
    for known_as in (name, name.upper() if name != "none" else "none", cls.__name__, *cls.aliases):
        assert type(parse(known_as)) is cls


@pytest.mark.parametrize(
    ("byzfl", "ours"),
    [
        ("SignFlipping", "signflip"),
        ("InnerProductManipulation", "ipm(c0=2.0)"),
        ("InnerProductManipulation(3.0)", "ipm(c0=3.0)"),
        ("ALittleIsEnough", "alie(z=-1.5)"),
        ("ALittleIsEnough(tau=0.5)", "alie(z=-0.5)"),
        ("Mimic(epsilon=2)", "mimic(client=2)"),
        ("Inf", "nonfinite(value='inf')"),
        ("Gaussian", "ga(centre=0.0, variance=1.0)"),
        ("Gaussian(1.0, sigma=2.0)", "ga(centre=1.0, variance=4.0)"),
        ("LabelFlipping", "lf"),
        ("NoAttack", "none"),
        ("Optimal_InnerProductManipulation", "optimal(family='ipm', jitter=0.0, aim='far')"),
        ("Optimal_ALittleIsEnough", "optimal(family='alie', jitter=0.0, aim='far')"),
    ],
)
def test_byzfl_names_are_understood(byzfl: str, ours: str) -> None:
    assert parse(byzfl) == parse(ours)


def test_a_parameter_of_byzfl_that_has_no_meaning_here_is_not_dropped_in_silence() -> None:
    with pytest.warns(RuntimeWarning, match="evals=50 of Optimal_ALittleIsEnough has no effect in robagg"):
        parse("Optimal_ALittleIsEnough(evals=50)")
    with pytest.raises(ValueError, match="tau of ALittleIsEnough must be given once"):
        parse("ALittleIsEnough(1.0, tau=2.0)")


@pytest.mark.parametrize("name", attacks.classes())
def test_an_unknown_parameter_is_a_sentence(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown parameter of {name} 'strenght'"):
        parse(f"{name}(strenght=1)")


@pytest.mark.parametrize("text", TEXTS)
def test_describes_itself_for_any_n_and_f(text: str) -> None:
    for n, f in [(20, 6), (20, 1), (20, 0), (3, 1), (2, 1), (1, 0), (5, 4)]:
        words = parse(text).describe(n, f)
        assert words
        assert "\n" not in words


@pytest.mark.parametrize("text", TEXTS)
def test_cannot_be_changed(text: str) -> None:
    attack = parse(text)
    for field in fields(attack):
        with pytest.raises(FrozenInstanceError):
            setattr(attack, field.name, None)


@pytest.mark.parametrize("name", attacks.classes())
def test_docstring_has_example_and_references(name: str) -> None:
    words = inspect.getdoc(attacks.classes()[name]) or ""
    for part in ("Example:", ">>> ", "References:"):
        assert part in words
    assert ("Args:" in words) == bool(fields(attacks.classes()[name]))  # type: ignore[arg-type]


def test_exported_names_are_those_of_the_folder() -> None:
    exported = {getattr(robagg.attacks, name) for name in robagg.attacks.__all__}
    exported = {x for x in exported if inspect.isclass(x) and issubclass(x, Attack) and not inspect.isabstract(x)}
    assert exported == set(attacks.classes().values())
