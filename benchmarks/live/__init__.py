"""What does Jobtree take on a real API server? ``__main__`` at rest, ``starts`` as runs start; ``page`` keeps both."""
