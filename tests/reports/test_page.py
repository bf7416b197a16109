"""Pages of reports in a real browser: on a desk, on a phone, on paper, in the dark, and read aloud."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtree.world.plan import Short, Wait
from reports.read.definition import names
from tests.reports.worlds import lease, record
from tests.support import documents as doc
from tests.support.browser import Browser, chromium
from tests.support.commands import jobtree

PHONE, DESK, WALL = 360, 1280, 1920
WIDEST, SLOW = "leases", pytest.mark.slow
OWNERS = [f"org:a-rather-long-name-of-a-department:team-{number}" for number in range(11)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two months, eleven owners with long names, something odd to be told of, text that a page must not run."""
    lake = tmp_path_factory.mktemp("page") / "lake"
    nodes = [doc.node(f"a{number:02d}", domain=f"<b>d{number}</b>") for number in range(11)]
    budgets = [doc.budget(owner, [doc.envelope(8, maxGPUHours=900)], name=f"b{n}") for n, owner in enumerate(OWNERS)]
    leases = [
        lease(
            f"l{number}", f"r{number}", [f"a{number:02d}#{gpu}" for gpu in range(1 + number % 8)], f"b{number}/gpus",
            ("owned", "-30h", "+2h"), ("unfunded", "+2h", None), owner=owner, rate=1.25,
        )
        for number, owner in enumerate(OWNERS)
    ]  # fmt: skip
    orphan = lease("o", "r", ["a10#7"], "gone/gpus", ("owned", "-1h", "+1h"), owner=OWNERS[0])
    short = Short(rule="concurrency", subject="b0/gpus", amount=4, unit="GPU")
    wait = Wait(
        namespace="default", name="w", reason="BudgetShort", message="<script>alert(1)</script>", shorts=[short]
    )
    documents = [*nodes, *budgets, *leases, orphan, doc.run("w", 4, OWNERS[0])]
    record(lake, "+1h", documents, [wait])
    record(lake, "+5h", documents, [wait])
    return lake


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module", params=[pytest.param(name, marks=() if name == WIDEST else SLOW) for name in names()])
def page(request: pytest.FixtureRequest, lake: Path) -> Path:
    """The page of a report."""
    path = lake.with_name(f"{request.param}.html")
    path.write_text(made(lake, request.param, "html"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chargeback(lake: Path) -> Path:
    """The page of one report, for what is the same on all of them."""
    path = lake.with_name("one.html")
    path.write_text(made(lake, "chargeback", "html"), encoding="utf-8")
    return path


def made(lake: Path, report: str, form: str) -> str:
    settings = ("--set", "currency=USD", "--set", "credit_price=2") if report == "focus" else ()
    return jobtree("report", report, "--lake", lake, "-o", form, *settings).ok().out


def test_a_page_asks_for_nothing_and_complains_of_nothing(browser: Browser, page: Path) -> None:
    browser.open(page)

    assert (browser.requests(), browser.log()) == ([], [])


@pytest.mark.parametrize("width", [PHONE, DESK, WALL])
def test_u16_nothing_of_a_page_lies_beyond_its_sides(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width=width)

    beyond = browser.ask("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    outside = browser.ask(
        "[...document.querySelectorAll('h1, p, li, dd, figcaption, svg')].filter(e => e.checkVisibility() && "
        "(e.getBoundingClientRect().left < 0 || e.getBoundingClientRect().right > innerWidth + 1 || "
        "e.scrollWidth > e.clientWidth + 1)).map(e => e.outerHTML.slice(0, 80))"
    )
    assert (beyond, outside) == (0, [])


@pytest.mark.parametrize("width", [PHONE, DESK, WALL])
def test_u16_a_table_fits_a_desk_scrolls_on_a_phone_and_breaks_no_name_or_number(
    browser: Browser, page: Path, width: int
) -> None:
    browser.open(page, width=width)

    # What is of one line is as high as the line of its text; a row's or column's name may break between its words.
    broken = browser.ask(
        "[...document.querySelectorAll('th .whole, tbody td, tfoot td')].filter(e => "
        "{ const r = document.createRange(); r.selectNodeContents(e); "
        "return new Set([...r.getClientRects()].map(each => Math.round(each.top))).size > 1; })"
        ".map(e => e.textContent)"
    )
    frames = browser.ask(
        "[...document.querySelectorAll('.wide-table')].map(e => "
        "[getComputedStyle(e).overflowX, e.scrollWidth > e.clientWidth])"
    )
    assert (broken, {overflow for overflow, _ in frames} - {"auto"}) == ([], set())
    assert width == PHONE or not any(beyond for _, beyond in frames)


@pytest.mark.parametrize("width", [PHONE, DESK, WALL])
def test_u16_no_text_of_a_picture_is_clipped(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width=width)

    clipped = browser.ask(
        "[...document.querySelectorAll('figure svg[role=img]')].filter(e => e.checkVisibility()).flatMap(svg => "
        "{ const box = svg.getBoundingClientRect(); return [...svg.querySelectorAll('text')].filter(t => "
        "{ const r = t.getBoundingClientRect(); return r.left < box.left - 1 || r.right > box.right + 1 || "
        "r.bottom > box.bottom + 1; }).map(t => t.textContent); })"
    )
    assert clipped == []


def test_u16_a_table_has_at_most_nine_columns_and_none_without_a_value(browser: Browser, page: Path) -> None:
    browser.open(page)

    columns = browser.ask(
        "[...document.querySelectorAll('thead th')].map((e, i) => [e.textContent, "
        "[...document.querySelectorAll('tbody tr')].some(row => !['', '-'].includes(row.cells[i].textContent))])"
    )
    assert len(columns) <= 9
    assert [title for title, has_value in columns if not has_value or "_" in title] == []


def test_a_page_may_be_held_by_a_strict_content_policy(browser: Browser, page: Path) -> None:
    browser.open(page)

    assert browser.ask("[...document.querySelectorAll('[style], script')].map(e => e.outerHTML.slice(0, 80))") == []


def test_a_page_prints(browser: Browser, page: Path) -> None:
    browser.open(page)

    pdf = browser.pdf()

    assert pdf.startswith(b"%PDF-")
    assert len(pdf) > 10_000


def test_a_page_leads_with_its_answer(browser: Browser, chargeback: Path) -> None:
    browser.open(chargeback)

    lead = browser.ask("document.querySelector('.lead').textContent")
    figures = browser.ask("[...document.querySelectorAll('.figures dt')].map(e => e.textContent)")
    total = browser.ask("[...document.querySelector('tfoot tr').cells].slice(0, 2).map(e => e.textContent)")
    # 1 + … + 8 + 1 + 2 + 3 GPUs for 32 h, and one that a Budget which is gone paid for.
    assert lead == (
        "1,346 GPU-hours are charged to 11 owners; most to "
        "org:a-rather-long-name-of-a-department:team-7, which pays for 19% of them."
    )
    assert (figures, total) == (["Charged", "Credits", "Most by"], [f"Total of {OWNERS[0][:-7]}", "1,346.00"])


def test_a_table_and_its_picture_can_be_read_aloud(browser: Browser, chargeback: Path) -> None:
    browser.open(chargeback, width=PHONE)
    tree = browser.tree()
    roles = {role for role, _ in tree}

    assert {"main", "heading", "table", "row", "rowheader", "cell", "columnheader"} <= roles
    named = {"table", "image", "figure", "region", "columnheader"} - {"table"}
    assert [role for role, name in tree if role in named and not name] == []
    (words,) = [name for role, name in tree if role == "image"]
    assert words.startswith("GPU-hours charged, by the owner who pays Stacked bars over time; summed up: org:a-")


def test_ink_and_paper_follow_the_reader_s_scheme(browser: Browser, chargeback: Path) -> None:
    colours = {}
    for dark in (False, True):
        browser.open(chargeback, dark=dark)
        style = "getComputedStyle(document.body)"
        colours[dark] = [contrast(browser, f"{style}.color", f"{style}.backgroundColor"), brightness(browser)]

    assert min(colours[False][0], colours[True][0]) >= 7  # WCAG AAA
    assert colours[False][1] > 0.9
    assert colours[True][1] < 0.1


def test_what_is_odd_in_the_lake_stands_on_the_page(browser: Browser, chargeback: Path) -> None:
    browser.open(chargeback)

    said = browser.ask("document.querySelector('.notices').innerText")
    assert re.search(r"Envelope gone/gpus: of .+ it is in no cycle of the period, and pays for 1 lease\b", said)


def luminance(rgb: str) -> float:
    """WCAG's relative luminance of ``rgb(r, g, b)``."""
    parts = [int(part) / 255 for part in rgb.removeprefix("rgb(").removesuffix(")").split(", ")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(browser: Browser, ink: str, paper: str) -> float:
    low, high = sorted((luminance(browser.ask(ink)), luminance(browser.ask(paper))))
    return (high + 0.05) / (low + 0.05)


def brightness(browser: Browser) -> float:
    return luminance(browser.ask("getComputedStyle(document.body).backgroundColor"))


def test_figures_are_written_to_the_last_digit(tmp_path: Path) -> None:
    record(tmp_path / "lake", "+1h", [doc.node("a01")])
    large, exact, huge = "9007199254740993::HUGEINT", "123456789012345678.5::DECIMAL(19, 1)", "2e20::HUGEINT"
    sql = f"-- Mine: digits.\nSELECT {large} AS large, {exact} AS exact, {huge} AS huge\n"
    (tmp_path / "mine.sql").write_text(sql)
    command = ("report", tmp_path / "mine.sql", "--lake", tmp_path / "lake", "-o")

    table, csv, text = (jobtree(*command, form).ok().out for form in ("table", "csv", "json"))
    assert "9,007,199,254,740,993   123,456,789,012,345,678.50" in table
    assert csv.splitlines()[1] == "9007199254740993,123456789012345678.5,200000000000000000000"
    for figure in ('"large": 9007199254740993', '"exact": 123456789012345678.5', '"huge": 200000000000000000000'):
        assert figure in text
