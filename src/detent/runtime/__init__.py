"""The turn loop: lease, intake, commit, recovery and the clocks; and the dispatcher beside it."""
