"""Who may ask: certificates, tokens, and what is asked of the API server about them."""
