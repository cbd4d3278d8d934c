"""Whether two questions may share an answer: what cosine similarity cannot see."""
