"""Tasks: what a parameter of theirs changes, and what it leaves as it was."""

from __future__ import annotations

import pytest
import torch

from robagg.data import Dataset
from robagg.lab import Run
from robagg.tasks import tasks
from robagg.training import LOSSES

IMAGES = Dataset(
    "images", torch.rand(8, 1, 28, 28), torch.arange(8), torch.rand(2, 1, 28, 28), torch.arange(2), classes=10
)


@pytest.mark.parametrize("name", ["mnist", "fashion"])
def test_a_smaller_model_of_a_task_has_a_key_of_its_own_and_the_same_loss(name: str) -> None:
    usual, small = tasks.parse(name), tasks.parse(f"{name}(model='mlp')")
    assert str(usual) == name
    keys = [Run(rule="tq", attack="none", f=1, task=text).key for text in (name, f"{name}(model='cnn')", str(small))]
    assert keys[0] == keys[1] != keys[2]
    model = small.build(IMAGES, seed=0)
    assert sum(p.numel() for p in model.parameters()) == 50_890
    out = model(IMAGES.train_x)
    torch.testing.assert_close(out.exp().sum(1), torch.ones(8))  # log-probabilities, as its loss wants
    assert LOSSES[small.loss](out, IMAGES.train_y).isfinite()


@pytest.mark.parametrize("name", ["mnist", "fashion", "digits"])
def test_a_model_that_there_is_not_is_refused_before_the_run(name: str) -> None:
    with pytest.raises(ValueError, match="unknown model 'foo'; there are: cnn, logistic, mlp, resnet20"):
        Run(rule="tq", task=f"{name}(model='foo')")
    assert Run(rule="tq", task=f"{name}(model='MLP')").key == Run(rule="tq", task=f"{name}(model='mlp')").key
