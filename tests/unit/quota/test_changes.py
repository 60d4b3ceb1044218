"""Names of what has changed, kept for whoever asks, and not without end where nobody does; and counters."""

from policy.quota.changes import LONGEST, MOST, Changes, Generations


def test_a_name_is_told_once():
    changes = Changes()
    changes.note("a", "q")
    changes.note("a")
    assert changes.take() == ({"a"}, {"q"}, False)
    assert changes.take() == (set(), set(), False)


def test_of_very_many_names_it_is_only_told_that_anything_may_be_different():
    changes = Changes()
    for number in range(MOST + 1):
        changes.note(f"namespace-{number}")
    assert changes.take() == (set(), set(), True)
    changes.note("a")
    assert changes.take() == ({"a"}, set(), False)


def test_a_name_that_no_queue_can_have_is_not_kept():
    changes = Changes()
    changes.note("a", "q" * (LONGEST + 1))
    assert changes.take() == ({"a"}, set(), False)


def test_all_subscribers_are_called_at_each_change():
    changes, called = Changes(), []
    changes.subscribers += [lambda: called.append("one"), lambda: called.append("other")]
    changes.note("a")
    changes.note()
    assert called == ["one", "other"] * 2


def test_nothing_is_noted_in_a_trial():
    changes, called = Changes(), []
    changes.subscribers.append(lambda: called.append("one"))
    with changes.trial():
        assert changes.in_trial
        changes.note("a", "q")
    assert not changes.in_trial
    assert (changes.take(), called) == ((set(), set(), False), [])


def test_a_trial_lets_in_nobody_else_and_undoes_no_other_change():
    generations = Generations()
    before, placing = generations.snapshot(), generations.of_placing
    generations.admission += 1
    generations.shares += 1
    assert generations.of_placing != placing
    generations.restore(before)
    assert (generations.of_placing, generations.shares) == (placing, 1)
