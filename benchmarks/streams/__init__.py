"""Who waits how long in a stream of jobs? ``__main__`` makes random ones, ``kueue`` that of Kueue's own benchmark.

``busy`` asks of a world without an end whether anything is cut or moves to no purpose; ``unneeded`` says which cuts
are.
"""
