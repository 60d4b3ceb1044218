"""The world around the rules: HTTP, watches, controllers, writes, settings, CLI."""
