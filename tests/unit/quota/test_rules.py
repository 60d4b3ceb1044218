"""What is to hold of every rule, so that whatever tells of rules can read it in their records."""

import pytest

from policy.explain.remedies import WAYS
from policy.quota.admission import OF_QUEUES, OF_QUOTAS
from policy.quota.rule import QUOTA, Rule
from policy.quota.rules import BY_NAME, RULES, named_in

NO_HINT = Rule("", "", QUOTA).hints
each_rule = pytest.mark.parametrize("rule", RULES, ids=BY_NAME)


def test_no_two_rules_have_one_name():
    assert len(BY_NAME) == len(RULES)


@each_rule
def test_a_rule_is_known_by_its_text(rule: Rule):
    assert named_in(f"0/3 nodes are available: 3 {rule.refusal(('cpu',)).message}.") is rule


@each_rule
def test_a_text_holds_no_number(rule: Rule):
    assert not any(letter.isdigit() for letter in rule.text)


@each_rule
def test_a_rule_about_numbers_is_asked(rule: Rule):
    assert (rule in [asked for asked, _ in (*OF_QUOTAS, *OF_QUEUES)]) is (rule.refuses is not None)


@each_rule
def test_who_is_measured_is_measured_by_a_figure_that_is_told(rule: Rule):
    assert rule.bound in {"", *rule.figures}


@each_rule
def test_only_a_rule_of_elastic_quotas_is_told_in_an_event_on_one(rule: Rule):
    assert not rule.event or rule.of == QUOTA


@each_rule
def test_people_are_told_what_would_let_a_refused_pod_in(rule: Rule):
    assert rule.refuses is None or rule.name in WAYS or rule.hints is not NO_HINT


def test_remedies_are_tried_for_rules_that_there_are():
    assert WAYS.keys() <= BY_NAME.keys()
