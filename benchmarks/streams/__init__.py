"""Who waits how long in a stream of jobs? ``__main__`` makes random ones, ``kueue`` that of Kueue's own benchmark."""
