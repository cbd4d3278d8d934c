"""Examples written here, in English and Chinese, from which the shipped small models learn."""
