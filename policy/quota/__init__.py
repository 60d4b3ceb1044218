"""The rules about numbers: ledger, elastic quotas, queues, proportion, fair share, water filling, admission."""
