"""`Embed`: vectors of many callers in one call of the embedder."""
