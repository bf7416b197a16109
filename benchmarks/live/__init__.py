"""What does Jobtree take on a real API server? ``__main__`` at rest, ``starts`` as runs start.

`fresh` reads as a new process does, `page` keeps what came of it.
"""
