"""kube-scheduler's verbs."""
