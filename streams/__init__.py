"""The topology: topics, agents' delivery, the join, the runner and its command line."""
