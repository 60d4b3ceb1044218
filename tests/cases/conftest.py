"""Servers that tests share, as starting one takes longest."""

import pytest

from tests.cases.runner import Servers


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    with Servers(tmp_path_factory.mktemp("servers")) as running:
        yield running
