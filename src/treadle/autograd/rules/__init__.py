"""The derivatives of everything that has one, a file a theme: tables of rules by names.

`derivatives` says what the derivative of an operation or of a function is.
"""

from collections.abc import Mapping

from treadle.autograd.derivative import OfFunction, OfNode, OfOperation
from treadle.autograd.rules import (
    activations,
    attention,
    class_losses,
    composed,
    convolution,
    distances,
    elementwise,
    embeddings,
    linalg,
    losses,
    moving,
    pooling,
    products,
    recurrences,
    reductions,
    resampling,
    rows,
    scans,
    scattering,
    special_functions,
    transforms,
)
from treadle.graph.history import Derivative

derivatives: Mapping[str, Derivative] = {
    **{name: OfOperation(name, rules) for name, rules in elementwise.RULES.items()},
    **{name: OfOperation(name, rules) for name, rules in special_functions.RULES.items()},
    **{name: OfNode(name, *rule) for name, rule in moving.NODES.items()},
    **{name: OfNode(name, *rule) for name, rule in reductions.NODES.items()},
    **{name: OfNode(name, *rule) for name, rule in embeddings.NODES.items()},
    **{name: OfNode(name, *rule) for name, rule in losses.NODES.items()},
    **{name: OfNode(name, *rule) for name, rule in pooling.NODES.items()},
    **{name: OfNode(name, *rule) for name, rule in scattering.NODES.items()},
    **products.DERIVATIVES,
    **{name: OfNode(name, *rule) for name, rule in transforms.NODES.items()},
    **attention.DERIVATIVES,
    **{
        name: OfFunction(name, rule)
        for functions in (
            activations.RULES,
            composed.RULES,
            convolution.RULES,
            distances.RULES,
            elementwise.FUNCTIONS_AS_ONE,
            embeddings.RULES,
            losses.RULES,
            moving.RULES,
            pooling.RULES,
            products.RULES,
            recurrences.RULES,
            reductions.RULES,
            resampling.RULES,
            rows.RULES,
            scans.RULES,
        )
        for name, rule in functions.items()
    },
    **{
        name: OfFunction(name, rule, check=class_losses.CHECKS[name])
        for name, rule in class_losses.RULES.items()
    },
    **{name: OfFunction(name, rule, looks=True) for name, rule in linalg.RULES.items()},
}
