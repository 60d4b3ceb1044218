"""Access control: certificates, tokens, and the API server's reviews of tokens and rights."""
