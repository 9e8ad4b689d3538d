"""Learning rates and optimizer, as `frostpipe train` defines them."""
import math

import torch

MAX_GRADIENT_NORM = 1.0
WARM_UP = 0.06  # fraction of the steps


def learning_rate(step, options):
    """The learning rate rises over the first steps and then falls linearly to 0."""
    rising = max(1, math.ceil(WARM_UP * options.steps))
    if step < rising:
        return options.learning_rate * (step + 1) / rising
    return options.learning_rate * (options.steps - step) / max(1, options.steps - rising)


def optimizer_of(parameters):
    """Returns AdamW with weight decay for matrices only; the fused version is PyTorch's fastest on the CPU."""
    parameters = list(parameters)
    return torch.optim.AdamW([
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.01},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ], fused=True)
