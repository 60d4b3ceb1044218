"""Of the selectors of device classes, plain comparisons are judged, and nothing else is."""

import pytest

from policy.objects.device_selector import Comparison, as_value, holds, parse


@pytest.mark.parametrize(
    ("expressions", "found"),
    [
        ([], ()),
        (["device.driver == 'gpu.example.com'"], (("driver", '"gpu.example.com"'),)),
        (['device.driver=="x"'], (("driver", '"x"'),)),
        (["device.attributes['x.com'].type == 'gpu'"], (("x.com/type", '"gpu"'),)),
        (['device.attributes["x.com"].cores == 7'], (("x.com/cores", "7"),)),
        (["device.attributes['x.com'].healthy"], (("x.com/healthy", "true"),)),
        (["device.attributes['x.com'].healthy == false"], (("x.com/healthy", "false"),)),
        (
            ["device.driver == 'x.com' &&\n  device.attributes['x.com'].type == 'gpu'", "device.driver == 'y'"],
            (("driver", '"x.com"'), ("x.com/type", '"gpu"'), ("driver", '"y"')),
        ),
    ],
)
def test_comparisons_are_read(expressions, found):
    assert parse(expressions) == tuple(Comparison(*each) for each in found)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "true",
        "device.driver != 'x'",
        "device.driver == 'x' || device.driver == 'y'",
        "!device.attributes['x'].y",
        "device.driver == 'a && b'",
        "device.attributes['x'].y.isGreaterThan(semver('1.0.0'))",
        "device.capacity['x'].memory.compareTo(quantity('40Gi')) >= 0",
        "'x' in device.attributes",
        r"device.driver == 'a\'b'",
        "(device.driver == 'x')",
    ],
)
def test_any_other_expression_is_not_judged(expression):
    assert parse([expression]) is None
    assert parse(["device.driver == 'x'", expression]) is None


def test_all_comparisons_have_to_hold_and_an_absent_attribute_meets_none():
    both = parse(["device.driver == 'x' && device.attributes['x'].cores == 7"])
    assert holds(both, {"driver": as_value("x"), "x/cores": as_value(7)})
    assert not holds(both, {"driver": as_value("x"), "x/cores": as_value("7")})
    assert not holds(both, {"driver": as_value("x")})
    assert holds((), {})


def test_values_of_different_types_are_different():
    assert len({as_value(each) for each in (True, 1, "1", "true", False, 0)}) == 6
