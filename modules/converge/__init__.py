"""Run a deploy and end with an exit status that can be trusted.

pyinfra itself ends with 0 when `--limit` matches nothing, when the inventory is empty and after Ctrl-C; and it prints
no results when the last host fails. This wrapper runs the same pyinfra command and closes those gaps.
"""
