"""Names of what has changed, kept for whoever asks, and not without end where nobody does."""

from policy.quota.changes import LONGEST, MOST, Touched


def test_a_name_is_told_once():
    touched = Touched()
    touched.note("a", "q")
    touched.note("a")
    assert touched.take() == ({"a"}, {"q"}, False)
    assert touched.take() == (set(), set(), False)


def test_of_very_many_names_it_is_only_told_that_anything_may_be_different():
    touched = Touched()
    for number in range(MOST + 1):
        touched.note(f"namespace-{number}")
    assert touched.take() == (set(), set(), True)
    touched.note("a")
    assert touched.take() == ({"a"}, set(), False)


def test_a_name_that_no_queue_can_have_is_not_kept():
    touched = Touched()
    touched.note("a", "q" * (LONGEST + 1))
    assert touched.take() == ({"a"}, set(), False)
