"""Numbers on the planner's page are the planner's: each is a constant of the code, read from the module that has it."""

import importlib
import pkgutil
import re
from dataclasses import is_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import cronjobs
import planner
from planner.effort import USUAL
from tests.docs import pages

PAGE: Final = (pages.ROOT / "docs" / "planner.md").read_text(encoding="utf-8")
PHRASES: Final = (
    "at most {effort.exact} runs that wait is *exact*",
    "Up to {effort.exact} runs that wait, the cheapest",
    "words beyond {effort.exact} waiting runs",
    "recall beyond {effort.exact} waiting runs",
    "Above {effort.small} integer columns",
    "Up to {effort.middle} integer columns",
    "`solver.gap` or {effort.nodes} nodes",
    "solved again, up to {effort.rounds} times",
    "up to {effort.seats} seats",
    "more than {effort.exact_nodes} nodes",
    "at most {branching.gangs} LPs",
    "in bands by the GPUs of a run: {rounding.bands[0]} and more, {rounding.bands[1]}, {rounding.bands[2]}, ",
    "more than {rounding.far:word} times `solver.gap`",
    "as many LPs as have {branching.columns} columns together",
    "up to {branching.looks} that were not branched on both ways",
    "up to {rounding.nodes} times, with {branching.further} LPs at most",
    "and so are {rounding.beside} nodes",
    "to {rounding.share:word} times the gap",
    "ends more than {effort.close:word} `solver.gap` from the bound, a master of up to {effort.again} integer columns",
    "more than {effort.dear:word} of what the plan lacks. It has {effort.rest_nodes} nodes at most",
    "than {effort.steps} steps of simplex",
    "a master of up to {effort.again} integer columns is solved once more",
    "within {effort.near:word} times `solver.gap`",
    "more than a {components.largest:word} of the integer columns",
    "At most {components.rounds} rounds, and no more than {components.columns} columns",
    "each part to {components.nodes} nodes, one of up to {components.compact} columns",
    "on {components.workers} threads",
    "`planner/placement/allot.py`, at most {placing.nodes} nodes",
    "up to {placing.columns} columns), within the kind",
    "Above {paying.in_parts} columns",
    "up to {paying.whole} the model as it is",
    "where that finds nothing or loses more than a {paying.much:word} of what all starts",
    "as far as {paying.nodes} nodes of branch and bound",
    "`planner/solver/rest.py`, at most {effort.rest_nodes} nodes",
    "The {pricing.listed} largest are in the plan",
    "A relaxation of more than {pricing.terms} terms has none",
    "A model of up to {highs.SMALL} columns is solved without feasibility jump",
    "A cycle waits up to {GRACE} s more",
)
"""What the page says of a constant, by its name; where two modules have the name, of one of them, or of both alike."""
OTHERS: Final = {"deadline.START_TIMEOUT", "effort.growing", "components.choice_nodes"}
"""Constants that the page does not speak of, and that happen to be the number of something that it does."""
_WORDS: Final = {2: "twice", 3: "three", 10: "ten", 0.3: "three tenths", 0.25: "quarter", 0.01: "hundredth"}


class Number(float):
    """A constant as prose has it: with commas, or as a word."""

    def __format__(self, spec: str) -> str:
        return _WORDS.get(float(self), f"{float(self):g}") if spec == "word" else f"{int(self):,}"


def constants() -> dict[str, Any]:
    """``module.NAME`` → value, of the planner and of what keeps its deadline; ``part.name`` of its effort."""
    found: dict[str, Any] = {}
    for part, limits in {"effort": USUAL, **vars(USUAL)}.items():
        if is_dataclass(limits):
            found |= {f"{part}.{name}": value for name, value in vars(limits).items()}
    for package in (planner, cronjobs):
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not each.ispkg:
                module = importlib.import_module(each.name)
                source = Path(str(module.__file__)).read_text(encoding="utf-8")
                names = re.findall(r"^([A-Z][A-Z_]*)(?:: Final\S*)? = ", source, re.MULTILINE)
                found |= {f"{each.name.rpartition('.')[2]}.{name}": getattr(module, name) for name in names}
    return {name: value for name, value in found.items() if isinstance(value, int | float | tuple)}


def names(found: dict[str, Any]) -> dict[str, Any]:
    """What phrases may name: modules, and constants whose value is the same wherever the name is."""
    modules: dict[str, Any] = {}
    bare: dict[str, set[Any]] = {}
    for name, value in found.items():
        module, _, constant = name.partition(".")
        number = tuple(map(Number, value)) if _are_numbers(value) else value
        number = Number(value) if isinstance(value, int | float) else number
        vars(modules.setdefault(module, SimpleNamespace()))[constant] = number
        bare.setdefault(constant, set()).add(number)
    return modules | {constant: value for constant, (value, *others) in bare.items() if not others}


def _are_numbers(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, int | float) for each in value)


def test_the_page_says_the_constants_of_the_code() -> None:
    text, known = " ".join(PAGE.split()), names(constants())
    said = [phrase.format(**known) for phrase in PHRASES]

    assert [phrase for phrase in said if phrase not in text] == []


def test_a_constant_whose_number_is_on_the_page_is_named_in_a_phrase() -> None:
    prose = re.sub(r"<!-- measured.*?end -->|```.*?```", "", PAGE, flags=re.DOTALL)
    printed = set(re.findall(r"(?<![\w.,])\d+(?:,\d{3})*(?![\w.,]*\d)", prose))
    on_page = set(re.findall(r"`planner/[\w/]*?(\w+)\.py`", PAGE))
    elsewhere = {"helping", "cutting", "odds", "explaining", "dating"}  # of which other pages speak
    on_page |= {"effort", *vars(USUAL)} - elsewhere
    there = {name for name in constants() if name.partition(".")[0] in on_page} | {"deadline.GRACE"}
    named = {name for phrase in PHRASES for name in re.findall(r"\{([\w.]+)", phrase)}
    numbers = {name: value for name, value in constants().items() if isinstance(value, int) and value >= 8}
    on_it = {name for name, value in numbers.items() if name in there and f"{value:,}" in printed}

    assert {name for name in on_it - OTHERS if not named & {name, name.partition(".")[2]}} == set()
