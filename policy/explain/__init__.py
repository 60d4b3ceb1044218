"""Why a pod waits: holders, remedies and next steps, for people."""
