"""The page in a real browser: by mouse, by keyboard, on a telephone, in the dark; and what a screen reader would find.

`UPDATE_SCREENSHOTS=RUN_DIRECTORY` serves that run in the test of the picture and writes docs/images/page.png.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from web_server import GAME, ROOT, make_run, server_process

from alphago_zero.constants import GAME_SUFFIX
from alphago_zero.runlog import append_line, generations_log
from alphago_zero.sgf import read_sgf

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="CHROMIUM IS MISSING: nothing of the page's looks was tested"),
]
playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
expect = playwright.expect
PATIENCE = 240  # seconds: on a busy machine, in which all kernels have to be compiled first
expect.set_options(timeout=1000 * PATIENCE)

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
PAGES = ("play", "review", "watch")
COUNT_SHIFTS = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({type: "layout-shift", buffered: true});
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def url(run):
    with server_process(run.root) as (address, _):
        yield address


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def serve():
    """`serve(folder)`: the address of another server. It outlives the pages, which would complain of its end."""
    with contextlib.ExitStack() as servers:
        yield lambda folder: servers.enter_context(server_process(folder))[0]


@pytest.fixture
def visit(browser, url, serve):
    """`visit("play", width=360)` opens the page; a complaint in its console fails the test."""
    complaints, contexts = [], []

    def note(message):
        # A browser writes down every request that was refused; the page tells the person, and so it is no fault.
        if message.type in ("error", "warning") and "status of 422" not in message.text:
            complaints.append(message.text)

    def open_page(name="play", width=1280, height=860, scheme="light", address=url, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.add_init_script(COUNT_SHIFTS)
        page.goto(f"{address}#{name}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def wait_until(condition):
    """Not `wait_for_function`: the page's policy forbids what that evaluates."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def begin_game(page, readouts="25", color="Black"):
    expect(page.get_by_role("heading", name="Your turn")).to_be_visible()
    page.get_by_role("group", name="Your colour").get_by_role("button", name=color, exact=True).click()
    page.get_by_label("Readouts a move").select_option(readouts)
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".detail")).to_contain_text(f"{readouts} readouts")


def point(page, name, what="empty"):
    return page.get_by_role("gridcell", name=f"{name}, {what}", exact=False)


def test_a_game_is_played_to_its_end_with_the_mouse(visit, tmp_path):
    page = visit("play")
    begin_game(page)
    over = page.get_by_role("heading", name="wins by")
    turn = page.get_by_role("heading", name="Your turn")
    for turns in range(40):
        wait_until(lambda: over.is_visible() or turn.is_visible())
        if over.is_visible():
            break
        before = page.locator(".detail").text_content()
        if turns < 3:
            page.locator(".cell[aria-label$=', empty']").nth(turns).click()
        else:
            page.get_by_role("button", name="Pass").click()
        wait_until(lambda before=before: page.locator(".detail").text_content() != before)
    expect(over).to_be_visible()
    assert page.locator(".layer-owners rect").count() > 0
    with page.expect_download() as download:
        page.get_by_role("button", name="Save SGF").click()
    download.value.save_as(tmp_path / "game.sgf")
    record = read_sgf(tmp_path / "game.sgf")
    assert record.black_name == "You" and record.winner is not None and len(record.moves) > 5
    page.get_by_role("button", name="Undo").click()
    expect(turn).to_be_visible()


def test_the_engines_thoughts_are_shown_on_demand(visit):
    page = visit("play")
    begin_game(page, "200")
    point(page, "C3").click()
    expect(page.get_by_role("heading", name="Your turn")).to_be_visible()
    assert page.locator(".spot").count() == 0
    page.get_by_role("button", name="Visits").click()
    expect(page.locator(".spot").first).to_be_visible()
    expect(page.locator(".share-words")).to_contain_text("Black")
    page.locator(".candidates tbody tr").first.hover()
    expect(page.locator(".layer-line .number").first).to_have_text("1")
    page.get_by_role("button", name="Policy").click()
    page.locator(".candidates tbody button").first.click()  # plays that move
    expect(page.get_by_text("Move 4 ·")).to_be_visible()
    page.get_by_role("button", name="Off").click()
    assert page.locator(".spot").count() == 0


def test_a_reload_goes_on_with_the_game(visit):
    page = visit("play")
    begin_game(page)
    point(page, "B2").click()
    expect(page.get_by_text("Move 2 ·")).to_be_visible()
    page.get_by_role("group", name="Your colour").get_by_role("button", name="White").click()  # of the next game
    page.reload()
    expect(point(page, "B2", "black stone")).to_be_visible()
    expect(page.get_by_text("Move 2 ·")).to_be_visible()
    expect(page.get_by_role("heading", name="Your turn")).to_be_visible()
    page.get_by_role("button", name="Resign").click()
    expect(page.get_by_role("heading", name="White wins by resignation")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="White wins by resignation")).to_be_visible()


def test_without_a_run_the_shipped_model_plays_and_a_run_is_shown_as_soon_as_there_is_one(visit, serve, tmp_path):
    page = visit("play", address=serve(tmp_path))
    expect(page.get_by_role("heading", name="Your turn")).to_be_visible()
    page.get_by_role("link", name="Watch it learn").click()
    expect(page.get_by_text("There is no run in")).to_be_visible()
    paths = make_run(tmp_path)
    expect(page.locator(".strip .judged")).to_have_count(1)
    shutil.rmtree(paths.models)
    expect(page.get_by_text("There is no run in")).to_be_visible()
    expect(page.locator(".strip .judged")).to_have_count(0)


def test_the_keyboard_is_enough(visit):
    page = visit("play")
    begin_game(page)
    expect(page.get_by_text("Move 0 ·")).to_be_visible()
    page.locator("body").click(position={"x": 2, "y": 2})
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "cell":
            break
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("C3")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Move 2 ·")).to_be_visible()
    expect(point(page, "B4", "black stone")).to_be_focused()
    expect(page.get_by_role("status")).to_contain_text("White plays")
    page.keyboard.press("p")
    wait_until(lambda: "Move 2 ·" not in page.locator(".detail").text_content())
    wait_until(lambda: page.locator("h2.status").text_content() != "Thinking …")
    page.keyboard.press("u")
    expect(page.get_by_text("Move 2 ·")).to_be_visible()
    page.keyboard.press("u")
    expect(page.get_by_text("Move 0 ·")).to_be_visible()


def test_a_file_is_reviewed(visit, tmp_path):
    file = tmp_path / "mine.sgf"
    file.write_text(GAME, encoding="utf-8")
    page = visit("review")
    page.locator("input[type=file]").set_input_files(file)
    expect(page.get_by_role("heading", name="Ada – Bob")).to_be_visible()
    page.get_by_role("button", name="Analyse the game").click()
    expect(page.get_by_text("From the analysis of the game.")).to_be_visible()
    page.keyboard.press("End")
    expect(page.get_by_text("Move 6 of 6")).to_be_visible()
    box = page.locator(".catcher").bounding_box()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + box["height"] / 2)  # of at least ten moves
    page.mouse.down()
    page.keyboard.press("Home")  # draws the curve anew under the finger
    expect(page.get_by_text("Move 0 of 6")).to_be_visible()
    page.mouse.up()
    expect(page.get_by_text("Move 2 of 6")).to_be_visible()
    expect(page.get_by_text("close")).to_be_visible()
    point(page, "B2").click()
    expect(page.get_by_text("Variation, 1 move")).to_be_visible()
    expect(point(page, "B2", "black stone")).to_be_visible()
    page.get_by_role("button", name="Back to the game").click()
    expect(point(page, "B2", "empty")).to_be_visible()
    # In one breath, so that the server says what it thinks of the move only after it has refused the file.
    page.evaluate("""() => {
      document.querySelector("[aria-label='Next move']").click();
      const input = document.querySelector("input[type=file]"), files = new DataTransfer();
      files.items.add(new File(["no game at all"], "bad.sgf"));
      input.files = files.files;
      input.dispatchEvent(new Event("change"));
    }""")
    expect(page.get_by_text("Move 3 of 6")).to_be_visible()
    expect(page.locator(".error", has_text="SGF data")).to_be_visible()
    page.wait_for_timeout(500)
    assert page.locator(".error", has_text="SGF data").count() == 1, "a late answer took the complaint away"


def test_a_hasty_reader_loses_no_click_and_an_illegal_move_no_variation(visit):
    page = visit("review")
    page.get_by_label("Games of this run").select_option(index=1)
    expect(page.get_by_text("Move 0 of 6")).to_be_visible()
    # All in one breath: the server has no time to say what it thinks of any of it.
    page.evaluate("""() => {
      const click = (selector) => document.querySelector(selector).click();
      click("[aria-label='Next move']");
      click(".cell[data-point='6']");
      click(".cell[data-point='0']");
    }""")
    expect(page.get_by_text("Variation, 2 moves")).to_be_visible()
    expect(point(page, "B4", "white stone")).to_be_visible()
    expect(point(page, "A5", "black stone, last move")).to_be_visible()
    point(page, "C3", "black stone").click()
    expect(page.locator(".error", has_text="C3 is occupied")).to_be_visible()
    expect(page.get_by_text("Variation, 2 moves")).to_be_visible()
    point(page, "E1").dblclick()
    expect(page.get_by_text("Variation, 3 moves")).to_be_visible()
    expect(point(page, "E1", "white stone, last move")).to_be_visible()
    expect(page.locator(".error")).to_be_empty()


def test_a_run_is_watched_while_it_goes_on(visit, serve, tmp_path):
    paths = make_run(tmp_path)
    page = visit("watch", address=serve(tmp_path))
    expect(page.get_by_role("heading", name="Self-play")).to_be_visible()
    expect(page.locator(".strip .judged")).to_have_count(1)
    expect(page.locator(".strip figcaption").first).to_contain_text("Black")
    first = paths.best.read_text(encoding="utf-8").strip()
    for file in paths.models.glob(f"{first}.*"):  # the next generation, whose description is published last
        if file.suffix != ".json":
            shutil.copy(file, paths.models / file.name.replace(first, "000001-new-cod"))
    described = (paths.models / f"{first}.json").read_text(encoding="utf-8")
    described = described.replace(first, "000001-new-cod").replace('"version": 0', '"version": 1')
    (paths.models / "000001-new-cod.json").write_text(described, encoding="utf-8")
    expect(page.get_by_role("heading", name="Evaluation")).to_be_visible()
    match = {"games": 20, "wins_a": 15, "wins_b": 5, "draws": 0}
    figures = {"length": 31.0, "pi_entropy": 2.0, "black_wins": 0.5, "validation": {"policy_loss": 3.1}}
    line = {"model": "000001-new-cod", "promoted": True, "match": match, **figures}
    append_line(generations_log(paths), line)
    expect(page.get_by_role("cell", name="15 : 5")).to_be_visible()
    assert page.locator(".band").count() == 1  # the interval of the Elo curve
    expect(page.locator(".strip .judged")).to_have_count(2)
    point(page, "C3").click()  # the position that all generations judge
    expect(page.locator(".strip .layer-stones circle")).to_have_count(2)
    games = page.locator(".latest button")
    games.first.focus()
    sgf = next(paths.sgf_clean(first).glob("*.sgf"))
    shutil.copy(sgf, sgf.with_name("00000007.sgf"))
    (paths.data / "selfplay" / first).mkdir(parents=True)
    (paths.data / "selfplay" / first / f"00000007{GAME_SUFFIX}").touch()  # with its record a game counts
    expect(games).to_have_count(3)
    expect(games.nth(1)).to_be_focused()  # news takes nothing out of anybody's hand
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Ada – Bob")).to_be_visible()
    assert page.url.endswith("#review")


@pytest.mark.slow
def test_a_smoke_run_is_watched_from_its_first_game_to_its_first_model(visit, serve, tmp_path):
    configuration = ["--config", str(ROOT / "configs" / "smoke.yaml"), "--run-dir", str(tmp_path)]
    command = [sys.executable, str(ROOT / "train.py"), *configuration, "--generations", "1"]
    page = visit("watch", address=serve(tmp_path))
    expect(page.get_by_text("There is no run")).to_be_visible()
    with open(tmp_path / "train.log", "w") as log:
        training = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            expect(page.get_by_text("at work")).to_be_visible(timeout=900_000)
            expect(page.locator(".latest button").first).to_be_visible(timeout=900_000)
            expect(page.get_by_role("rowheader", name="000001-")).to_be_visible(timeout=900_000)
            assert training.wait(timeout=900) == 0, (tmp_path / "train.log").read_text()
            expect(page.get_by_text("stopped")).to_be_visible()
            expect(page.locator(".strip .judged")).to_have_count(2)
        finally:
            training.kill()
            training.wait()


@pytest.mark.parametrize("name", PAGES)
def test_it_fits_a_telephone_and_a_wall(visit, name):
    for width, height in ((360, 740), (3840, 2160)):
        page = visit(name, width=width, height=height, has_touch=width == 360)
        expect(page.locator(".board").first).to_be_visible()
        time.sleep(0.5)
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        assert page.evaluate("window.shifted") < 0.02
        board = page.locator(".board").first.bounding_box()
        assert board["width"] == pytest.approx(board["height"], abs=1)
        if name == "play":
            assert board["width"] > (300 if width == 360 else 1200)


def test_a_finger_plays(visit):
    page = visit("play", width=360, height=740, has_touch=True)
    begin_game(page)
    expect(page.get_by_text("Move 0 ·")).to_be_visible()
    point(page, "D4").tap()
    expect(page.get_by_text("Move 2 ·")).to_be_visible()
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit, scheme):
    for name in PAGES:
        page = visit(name, scheme=scheme)
        expect(page.locator(".board").first).to_be_visible()
        if name == "play":
            page.get_by_role("button", name="Visits").click()
            expect(page.locator(".spot").first).to_be_visible()
        time.sleep(0.5)
        found = axe.Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_the_theme_can_be_chosen(visit):
    page = visit("play", scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_label("Theme").select_option("Dark")
    assert page.evaluate(ground) != light
    page.reload()
    assert page.evaluate(ground) != light


def test_the_picture_of_the_page(visit, serve, url, tmp_path):
    """A game on the way, with the engine's thoughts. In the README it is one of a trained model."""
    folder = os.environ.get("UPDATE_SCREENSHOTS")
    target = ROOT / "docs" / "images" / "page.png" if folder else tmp_path / "page.png"
    address = serve(Path(folder).resolve()) if folder else url
    page = visit("play", width=1040, height=780, address=address, device_scale_factor=1)
    begin_game(page, "400")
    for turns in range(7 if folder else 2):
        expect(page.get_by_text(f"Move {2 * turns} ·")).to_be_visible()
        page.get_by_role("button", name="Visits").click()
        expect(page.get_by_text("400 of 400 readouts")).to_be_visible()
        page.locator(".candidates tbody button").first.click()
    expect(page.get_by_role("heading", name="Your turn")).to_be_visible()
    expect(page.get_by_text("400 of 400 readouts")).to_be_visible()
    page.mouse.move(5, 5)  # away from the table, whose moves hide the heat
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=target)
    assert target.read_bytes().startswith(b"\x89PNG") and target.stat().st_size > 20_000
