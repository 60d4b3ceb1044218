"""Preemption: which pods to evict so that a pending pod can run, and which Jobs would fail by that.

``victims`` answers questions, ``reclaim`` says for which pods they are asked, and ``out_of_turn`` which plans have to
wait for earlier ones. Below ``victims``, each file uses only
those named after it: ``own_first``, ``search``; ``candidate_nodes``, ``pruning`` and ``single_victim``;
``eviction_trial``, ``evictable``, ``borrowers``, ``entitlement``, ``gang_mates``, ``ranking``, ``taken``, ``losses``,
``plans``.
"""
