"""What is remembered of a cluster for the page: nothing of what is gone, whatever it was called."""

from app.settings import Settings
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.pods import PODS
from app.web.overview import Overview
from tests.unit.app.given import pod, queue, quota, refused, see, store_with

QUEUE = "scheduling.volcano.sh/queue-name"


def test_queues_and_resources_that_tenants_have_named_are_forgotten_with_them():
    store = store_with(queue("default"))
    overview = Overview(store, Settings(), ())
    for number in range(3):
        name = f"n{number}"
        waiting = pod("waiting", name, metadata={"annotations": {QUEUE: name}})
        see(store, quota(name, min={f"example.com/{name}": "2"}), refused(waiting))
        list(overview.look())
        assert overview._crowds.by_queue == {name: 1}
        assert overview._between_quotas._lenders.keys() == {f"example.com/{name}"}
        store.delete(PODS, f"{name}/waiting")
        store.delete(ELASTIC_QUOTAS, (name, "quota"))
        list(overview.look())
    assert overview._crowds.by_queue == {}
    assert overview._between_quotas._lenders == {}
    assert overview._quotas._keys == {}
