"""Sources: what the project needs from outside, how it is obtained, and how it is verified."""
