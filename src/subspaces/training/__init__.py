"""The one training loop: stateless randomness, checkpoints that survive a kill, progress."""
