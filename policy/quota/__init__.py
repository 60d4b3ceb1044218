"""The rules about numbers: the ledger, elastic quotas, queues, fair share, water filling, entitlement, admission."""
