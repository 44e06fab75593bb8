"""Fault simulation: the real engine on a disk, a clock and threads that fail on purpose, all drawn from one seed.

``python -m tests.faults --minutes 5`` runs schedules and prints the seed of a failure; ``--seed`` runs it again.
"""
