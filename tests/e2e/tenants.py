"""Everybody of whom docs/security.md says what they can do, on a real API server."""

from dataclasses import dataclass

from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import Object
from tests.controlplane.processes import wait_until
from tests.e2e.deeds import GATE, MANAGED, NODE, RUNNING, WAITING, WEIGHT, Deed, deeds, limited, ours

STOCK, RIGHT = ("edit", "admin"), "right"
"""Who asks: by one of Kubernetes' own roles, or by a right to what is asked for, and to nothing else."""
_RBAC = "rbac.authorization.k8s.io"
_KNOWN = {"apiGroups": ["tests.quotaward.dev"], "resources": ["known"], "verbs": ["get"]}
"""A rule of every role here, so that it can be asked whether the API server has heard of the role."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server has against a request of somebody, empty for nothing."""

    deed: Deed
    user: str
    objection: str


Answers = dict[tuple[str, str], list[Answer]]
"""By row of the table, and by who asks."""


class Tenants:
    """A namespace with a quota and one with a queue, and everybody of the table in each of them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.api = cluster, cluster.api
        cluster.node(NODE)
        cluster.queue("poor")
        self.homes = [cluster.namespace("quota"), cluster.namespace("queue", "poor")]
        cluster.quota(self.homes[0], min={"cpu": 1})
        self._right: dict[tuple[str, str], str] = {}
        self._users = 0
        self._operators: list[str] = []
        for home in self.homes:
            self._furnish(home)
            for role in STOCK:
                self._bind(f"{role}@{home}", role, home, "ClusterRole")
                wait_until(
                    lambda user=f"{role}@{home}", home=home: self._may(user, home, "create", "pods"), "it is filled"
                )
            for row, wanted in self.deeds(home).items():
                self._right[home, row] = self.somebody(home, *wanted)

    def close(self) -> None:
        """Takes the rights over the whole cluster away."""
        for name in self._operators:
            self.api.delete("clusterrolebindings", name)
            self.api.delete("clusterroles", name)

    def deeds(self, home: str) -> dict[str, list[Deed]]:
        """The requests of each row, but for those about the quota where there is none."""

        def possible(deed: Deed) -> bool:
            return home == self.homes[0] or not deed.resource.startswith("elasticquotas") or deed.verb == "create"

        return {row: [each for each in wanted if possible(each)] for row, wanted in deeds(home).items()}

    def somebody(self, home: str, *wanted: Deed) -> str:
        """A new user, who may do these in that namespace and nothing else."""
        return self._new_user(home, "Role", wanted)

    def operator(self, *wanted: Deed) -> str:
        """A new user, who may do these in every namespace and nothing else."""
        user = self._new_user("", "ClusterRole", wanted)
        self._operators.append(user)
        return user

    def ask(self, deed: Deed, user: str, group: str = "") -> str:
        """What the API server has against a request of somebody, empty for nothing."""
        return deed.asked(self.api, **{"Impersonate-User": user}, **({"Impersonate-Group": group} if group else {}))

    def answers(self) -> Answers:
        """What everybody is told, row by row."""
        return {(row, who): self._answers(row, who) for row in deeds("") for who in (*STOCK, RIGHT)}

    def _answers(self, row: str, who: str) -> list[Answer]:
        return [
            Answer(each, (user := self._right[home, row] if who == RIGHT else f"{who}@{home}"), self.ask(each, user))
            for home in self.homes
            for each in self.deeds(home)[row]
        ]

    def _furnish(self, home: str) -> None:
        self.api.create_all(
            [
                ours(RUNNING, home, nodeName=NODE),
                ours("told", home, nodeName=NODE),
                ours("free", home),
                ours(WAITING, home, schedulingGates=[{"name": GATE}]),
                limited(home, "weight", {WEIGHT: "2"}),
                limited(home, "plain", {"pods": "100"}),
                limited(home, "quotaward", {"pods": "100"}, **{MANAGED: "true"}),
            ]
        )
        told = {"type": "quotaward.dev/CountsIn", "status": "True", "message": "poor"}
        self.api.patch("pods", "told/status", {"status": {"conditions": [told]}}, home)

    def _new_user(self, home: str, kind: str, wanted: tuple[Deed, ...]) -> str:
        self._users += 1
        user = f"tests-somebody-{self._users}"
        role = {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": _metadata(user, home)}
        self.api.create(role | {"rules": [_KNOWN, *(each.rule for each in wanted)]})
        self._bind(user, user, home, kind)
        wait_until(
            lambda: self._may(user, home, "get", "known", "tests.quotaward.dev"), "the API server knows the role"
        )
        return user

    def _bind(self, user: str, role: str, home: str, kind: str) -> None:
        binding = {"apiVersion": f"{_RBAC}/v1", "kind": "RoleBinding" if home else "ClusterRoleBinding"}
        binding["metadata"] = _metadata(role, home)
        binding["roleRef"] = {"apiGroup": _RBAC, "kind": kind, "name": role}
        self.api.create(binding | {"subjects": [{"apiGroup": _RBAC, "kind": "User", "name": user}]})

    def _may(self, user: str, home: str, verb: str, resource: str, group: str = "") -> bool:
        attributes = {"group": group, "resource": resource, "verb": verb, "namespace": home}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        review["spec"] = {"user": user, "resourceAttributes": attributes}
        url = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return self.api.request("POST", url, json=review)["status"]["allowed"]


def _metadata(name: str, home: str) -> Object:
    return {"name": name} | ({"namespace": home} if home else {})
