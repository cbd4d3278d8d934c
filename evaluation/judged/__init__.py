"""Judged rows: edge answers with a score and the verdict on them."""
