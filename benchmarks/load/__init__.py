"""Load: four arms of the whole system at growing numbers of callers. `make bench`."""
