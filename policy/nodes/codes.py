"""Labels of many nodes or kinds of pods as codes: a code for each value, -1 for none."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policy.objects.constraints import Requirement

Codes = NDArray[np.intp] | NDArray[np.int32]
Mask = NDArray[np.bool_]


def among(codes: Codes, index: Mapping[Any, int], values: Iterable[str]) -> Mask:
    """Returns where one of these values stands. ``index`` has the code of each value that occurs."""
    verdicts = np.zeros(len(index) + 1, np.bool_)
    verdicts[[index[value] for value in values if value in index]] = True
    return verdicts[codes]


def meeting(codes: Codes, index: Mapping[Any, int], requirement: Requirement) -> Mask:
    """Returns where a requirement on the label is met. An absent label meets NotIn; nothing meets Gt or Lt."""
    match requirement.operator:
        case "In":
            return among(codes, index, requirement.values)
        case "NotIn":
            return ~among(codes, index, requirement.values)
        case "Exists":
            return codes >= 0
        case "DoesNotExist":
            return codes < 0
        case _:
            return np.zeros(len(codes), np.bool_)
