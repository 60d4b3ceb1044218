"""The stock scheduler heeds where borrowers are to go, and where they are not."""

from tests.controlplane.objects import is_bound, pod, pods
from tests.controlplane.processes import wait_until
from tests.e2e.waiting import wait_for


def node_of(watching, name):
    (found,) = wait_until(
        lambda: [each for each in watching.pods if each["metadata"]["name"] == name and is_bound(each)],
        f"{name} is bound",
    )
    return found["spec"]["nodeName"]


def test_borrowers_go_where_borrowers_are_and_guaranteed_pods_elsewhere(cluster, scheduler, watch):
    first, *others = cluster.nodes(3)
    borrowing, guaranteed, free = cluster.namespace(), cluster.namespace(), cluster.namespace()
    cluster.quota(borrowing, min={"cpu": 1}, max={"cpu": 90})
    cluster.quota(guaranteed, min={"cpu": 90}, max={"cpu": 90})
    borrowers, owners, strangers = watch(borrowing), watch(guaranteed), watch(free)
    cluster.api.create_all(pods(2, borrowing, prefix="there", nodeName=first))
    wait_for(borrowers, bound=2)
    cluster.api.create(pod("stranger", free))
    assert node_of(strangers, "stranger") in others, "by itself the scheduler takes a node that is more free"
    cluster.api.create_all(pods(3, borrowing, prefix="borrower"))
    assert {node_of(borrowers, f"borrower-{number}") for number in range(3)} == {first}
    cluster.api.create_all(pods(9, guaranteed, prefix="owner"))  # so many that they would be spread over all nodes
    assert {node_of(owners, f"owner-{number}") for number in range(9)} == set(others)
