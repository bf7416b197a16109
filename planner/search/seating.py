"""From seats of a solved master to slots: each group draws its pods from those of its type in its domain."""

from jobtree.world.tables.values import Floats
from planner.placement.place import Piece
from planner.placement.room import Chunk, Room
from policies.model.master import Master
from policies.model.seats import Seat, Seating, unit, wanted


def seatings(room: Room) -> list[Seating]:
    """The nodes with free slots, in name order."""
    fleet = room.fleet
    return [
        Seating(n, int(fleet.site[n]), int(fleet.domain[n]), free, room.cpu[n], room.memory[n], room.pods[n])
        for n, free in enumerate(room.free)
        if free
    ]


def seat(room: Room, master: Master, values: Floats, pieces: list[Piece]) -> list[Piece]:
    """Give every piece its chunks; returns those without seats in the solution (none, unless the solver erred)."""
    pool: dict[tuple[int, int, bool], list[tuple[int, int]]] = {}
    for key, column in sorted(master.seats.items(), key=lambda item: _fullest_first(room, item[0])):
        count = round(float(values[column]))
        if count:
            pool.setdefault((key.type, key.kind, key.active), []).append((key.node, count))
    return [piece for piece in pieces if not _draw(room, master, pool, piece)]


def _fullest_first(room: Room, key: Seat) -> tuple[int, int]:
    return room.free[key.node], key.node


def _draw(room: Room, master: Master, pool: dict[tuple[int, int, bool], list[tuple[int, int]]], piece: Piece) -> bool:
    candidate = master.problem.candidates[piece.candidate]
    size = unit(master.problem.types[candidate.type])
    chunks: list[Chunk] = []
    left = {key: list(mine) for key, mine in pool.items() if key[:2] == (candidate.type, piece.kind)}
    for group, shape in piece.groups:
        for active in (True, False):
            need = wanted(shape, active=active)
            queue = left.get((candidate.type, piece.kind, active), [])
            while need and queue:
                node, count = queue.pop(0)
                here = min(need, count)
                need -= here
                if count > here:
                    queue.insert(0, (node, count - here))
                pods = (here if shape.pod else 1) if active else 0
                chunks.append(Chunk(group, node, here * size, pods, active))
            if need:
                return False
    pool.update(left)
    piece.domain = master.kinds[piece.kind].domains[0]
    piece.chunks = chunks
    room.take(chunks, piece.load)
    return True
