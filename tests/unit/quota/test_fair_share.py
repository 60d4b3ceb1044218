"""Shares of namespaces of what their queue deserves, at the ends of what numbers can hold."""

import numpy as np

from policy.objects.quantity import LARGEST
from policy.quota import fair_share


def test_one_absurd_request_does_not_make_room_for_everybody():
    wanted = np.array([[LARGEST], [10], [10]], np.int64, order="F")
    there, weight = np.array([100], np.longdouble), np.ones(3, np.longdouble)
    parts = fair_share.divided(wanted, np.array([[12]], np.int64), there, weight, np.zeros(3, np.intp))
    assert parts[:, 0].tolist() == [4, 4, 4]
