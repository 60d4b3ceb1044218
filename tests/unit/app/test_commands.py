"""Commands that people are offered to paste into a shell, whatever things are called."""

import shlex

import pytest

from app.whatif.commands import commands
from policy.explain.remedy import ObjectChange


def changes(name, namespace="a", resource="cpu"):
    yield ObjectChange("Pod", namespace, name, removed=True)
    yield ObjectChange("ElasticQuota", namespace, name, ((("spec", "max", resource), None),))


@pytest.mark.parametrize("name", ["a; reboot", "$(reboot)", "`reboot`", "'; reboot; '", "a b", "&", "\\"])
def test_a_name_stays_one_word_whatever_it_is(name):
    made = commands(changes(name, resource=name))
    assert [name in shlex.split(command) for command in made] == [True, True]


@pytest.mark.parametrize(
    "name", ["--all", "-A", "a\nreboot\n", "\x1b[201~reboot", "\x9b201~", "\N{RIGHT-TO-LEFT OVERRIDE}"]
)
def test_no_command_is_offered_for_a_name_that_kubectl_or_a_terminal_misreads(name):
    for change in (*changes(name), *changes("p", namespace=name)):
        assert commands([change]) == []


def test_nor_for_a_field_of_a_pod_that_stays_as_it_is():
    field, annotation = ("spec", "nodeSelector"), ("metadata", "annotations", "a")
    assert commands([ObjectChange("Pod", "a", "p", ((field, None),))]) == []
    assert len(commands([ObjectChange("Pod", "a", "p", ((annotation, "b"),))])) == 1


def test_nor_for_a_resource_that_a_terminal_would_take_for_something_else():
    assert commands(changes("q", resource="\x9b201~reboot")) == []
