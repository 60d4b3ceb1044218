"""Running Quotawards for the tests of the wire."""

import contextlib

import pytest

from tests.cases.folder import Folder
from tests.cases.serving import serving
from tests.wire.cluster import NODES, pending

BODY_LIMIT = 32 * 2**20
"""Smaller than the default, so that more than that is sent quickly."""


@pytest.fixture(scope="module")
def serve(tmp_path_factory):
    """Serves what the words of a case describe, until the module's tests are done."""
    with contextlib.ExitStack() as stack:

        def start(given):
            directory = tmp_path_factory.mktemp("wire")
            folder = Folder(directory / "manifests")
            folder.create(given)
            settings = directory / "quotaward.yaml"
            settings.write_text(f"extender:\n  bodyLimit: {BODY_LIMIT}\n")
            flags = ("--manifests", str(folder.path), "--controllers", "none", "--config", str(settings))
            return stack.enter_context(serving(*flags, log=directory / "serve.log"))

        yield start


@pytest.fixture(scope="module")
def server(serve):
    """Two nodes with room and the recorded pods without a quota; in namespace q, room for one of two pods."""
    names = ["filter.node-names", "filter.full-nodes", "prioritize.node-names", "preempt.meta-victims"]
    limited = {"name": "limited", "ns": "q", "uid": "limited", "cpu": 1, "count": 2}
    quotas = {"q": {"max": {"cpu": 1}}}
    return serve({"nodes": NODES, "elasticQuotas": quotas, "pods": [*(pending(name) for name in names), limited]})
