"""Whatever REST is asked, it answers as its OpenAPI document says."""

from tests.fuzz.rest import ask_everything


def test_rest_answers_as_its_description_says():
    done = ask_everything("--seed", "1", "--max-examples", "10")
    assert done.returncode == 0, done.stdout + done.stderr
