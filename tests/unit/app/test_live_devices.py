"""``quotaward check --cluster`` knows the devices that nodes have by slices, and all names of their classes."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from app.checks import live
from app.settings import Settings
from app.store.device_classes import DEVICE_CLASSES
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.nodes import NODES
from app.store.queues import QUEUES
from app.store.resource_slices import RESOURCE_SLICES
from tests.controlplane.devices import device_class, devices
from tests.unit.app.given import kubeconfig, node, queue, quota

GPU = "nvidia.com/gpu"
KEY = "gpu.deviceclass.resource.k8s.io/devices"
CLASS = device_class("gpu", extendedResourceName=GPU)
UNREAD = "may not be read or are too many, so devices count here only as far as nodes list them"


@pytest.fixture
def check(tmp_path):
    """The findings in a cluster of these objects. ``forbidden``: kinds that may not be listed."""

    def run(*objects, forbidden=(), settings=None):
        kinds = {kind.path: kind for kind in (NODES, ELASTIC_QUOTAS, QUEUES, DEVICE_CLASSES, RESOURCE_SLICES)}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                kind = kinds.get(self.path.partition("?")[0])
                items = [each for each in objects if kind is not None and each["kind"] == kind.name]
                status = 403 if kind in forbidden else 200 if kind in (NODES, ELASTIC_QUOTAS, QUEUES) or items else 404
                self._answer(status, {"items": items})

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self._answer(201, {"status": {"allowed": True}})

            def _answer(self, status, document):
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Nobody reads it."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        file = tmp_path / "kubeconfig"
        file.write_text(kubeconfig(f"http://127.0.0.1:{server.server_port}"))
        try:
            found = asyncio.run(live.cluster(file, settings or Settings()))
        finally:
            server.shutdown()
            server.server_close()
        return [each.text for each in found.findings]

    return run


def about(texts, *words):
    return [text for text in texts if any(word in text for word in words)]


@pytest.mark.parametrize("name", [GPU, KEY, "deviceclass/gpu", f"requests.{GPU}"])
def test_devices_of_slices_are_on_nodes_under_all_their_names(check, name):
    bounds = [quota("a", min={GPU: 1}, max={name: 4}), quota("b", min={name: 2}), queue("q", capability={name: 4})]
    found = check(node("n1", cpu=4), CLASS, devices(4, "n1"), *bounds)
    assert about(found, "gpu", UNREAD) == []


def test_a_min_beyond_the_devices_of_slices_is_named_by_the_name_that_counts(check):
    found = check(node("n1", cpu=4), CLASS, devices(4, "n1"), quota("a", min={GPU: 3}), quota("b", min={KEY: 2}))
    assert about(found, "gpu") == [f"min of all elastic quotas is 5 of {GPU}, but the nodes have 4"]


def test_a_bound_of_a_class_bounds_also_while_no_node_has_its_devices(check):
    found = check(node("n1", cpu=4), CLASS, quota("a", max={GPU: 4}))
    assert about(found, "is on no node") == []


def test_nothing_is_said_to_be_too_much_of_devices_that_cannot_be_counted(check):
    unread = device_class("gpu", extendedResourceName=GPU, selectors=[{"cel": {"expression": "device.odd()"}}])
    bounds = quota("a", min={GPU: 9}, max={GPU: 9}), queue("q", capability={GPU: 9})
    objects = node("n1", cpu=4), unread, devices(4, "n1"), *bounds
    assert about(check(*objects), "gpu") == []
    said = [{"name": "gpu", "selector": "device.driver == 'gpu.example.com'"}]
    [text] = about(check(*objects, settings=Settings(devices={"classes": said})), "gpu")
    assert text == f"min of all elastic quotas is 9 of {GPU}, but the nodes have 4"


def test_devices_that_may_not_be_read_are_told_once(check):
    objects = node("n1", cpu=4), CLASS, devices(4, "n1"), quota("a", max={GPU: 4})
    found = check(*objects, forbidden=(DEVICE_CLASSES, RESOURCE_SLICES))
    assert about(found, UNREAD) == [f"{DEVICE_CLASSES.label} and {RESOURCE_SLICES.label} {UNREAD}"]


def test_without_the_api_of_devices_that_is_told_once(check):
    found = check(node("n1", cpu=4), quota("a", max={"cpu": 4}))
    assert about(found, UNREAD, "DeviceClass ") == ["DeviceClass of resource.k8s.io is not installed"]
