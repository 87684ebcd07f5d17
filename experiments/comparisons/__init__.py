"""Methods that the library does not offer, built from its parts for the experiments."""
