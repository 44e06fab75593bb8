"""The guided form that turns a file of past decisions into a policy."""
