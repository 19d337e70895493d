"""Table 5 at f=4 with training images as they are: the paper does not say whether its were cropped and flipped."""

from dataclasses import replace

from robagg.paper import table5

EXPERIMENT = replace(
    table5.EXPERIMENT,
    name="table5-plain",
    title="CIFAR-10, rho=0.4, images neither cropped nor flipped: accuracy under six attacks",
    task="cifar10(augment=False)",
    panels=table5.PANELS[-1:],
    seeds=1,
    notes=("Training images are as they are; the paper does not say whether its are.",),
)
