"""The page's server: games, reviews and watching, and what it refuses."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from urllib.parse import quote

import aiohttp
import numpy as np
import pytest
from web_server import CONFIG, GAME, ROOT, Board, board, make_run, server_process, serving

from alphago_zero import model as models
from alphago_zero.constants import RunPaths
from alphago_zero.go import BLACK, WHITE, BoardState
from alphago_zero.inference import load_evaluator
from alphago_zero.loop import lock_run
from alphago_zero.mcts import TreeSearch
from alphago_zero.model import list_models
from alphago_zero.runlog import append_line, generations_log
from alphago_zero.sgf import read_sgf
from alphago_zero.web.limits import Bucket, Limits, Refusal
from alphago_zero.web.networks import Networks
from alphago_zero.web.play import handicap_stones
from alphago_zero.web.watch import generations

PASS = 25


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunPaths:
    return make_run(tmp_path_factory.mktemp("run"))


def is_persons_turn(position):
    return position["persons_turn"]


# --- play -------------------------------------------------------------------------------------------------------------


def test_a_game_is_played_to_its_end_scored_and_saved(run):
    async def play():
        async with serving(run) as client, board(client, color="black", readouts=8) as game:
            position = await game.wait_for("position")
            while not position["over"] and not position["result"]:
                legal = [k for k, letter in enumerate(position["legal"]) if letter == "1"]
                move = legal[0] if legal and position["move_number"] < 30 else PASS
                await game.send(type="play", move=move)
                position = await game.wait_for(
                    "position", lambda p: p["over"] or p["result"] or (p["persons_turn"] and p["move_number"])
                )
            result = position["result"]
            if not result:
                score = await game.wait_for("score")
                assert score["final"] and len(score["owners"]) == 25
                assert all(position["stones"][point] != "." for point in score["dead"])
                result = score["result"]
            await game.send(type="sgf")
            record = read_sgf((await game.wait_for("sgf"))["text"].encode())
            assert record.result == result
            assert [move for _, move in record.moves] == position["moves"]

    asyncio.run(play())


def test_undo_goes_back_to_the_persons_turn_and_resigning_loses(run):
    async def play():
        async with serving(run) as client, board(client, color="white", readouts=8) as game:
            first = await game.wait_for("position", is_persons_turn)
            assert first["move_number"] == 1  # the engine opened
            await game.send(type="play", move=PASS)
            await game.wait_for("position", lambda p: p["persons_turn"] and p["move_number"] == 3)
            await game.send(type="undo")
            assert (await game.wait_for("position"))["stones"] == first["stones"]
            await game.send(type="resign")
            assert (await game.wait_for("position"))["result"] == "B+R"
            await game.send(type="undo")
            again = await game.wait_for("position")
            assert again["result"] is None and again["moves"] == first["moves"]

    asyncio.run(play())


def test_an_illegal_move_is_refused_with_its_reason_and_the_game_goes_on(run):
    async def play():
        async with serving(run) as client, board(client, color="both", readouts=4, moves=[12]) as game:
            await game.wait_for("position")
            await game.send(type="play", move=12)
            assert "C3 is occupied" in (await game.wait_for("error"))["message"]
            await game.send(type="play", move=13)
            assert (await game.wait_for("position"))["moves"] == [12, 13]

    asyncio.run(play())


def test_the_search_streams_while_it_thinks_and_another_command_stops_it(run):
    async def play():
        async with serving(run, Limits(readouts=1_000_000)) as client:
            async with board(client, color="white", readouts=1_000_000) as game:
                counts = [(await game.wait_for("thoughts"))["readouts"] for _ in range(3)]
                assert counts == sorted(counts) and counts[0] < counts[2] < 1_000_000
                await game.send(type="new", color="white", readouts=8)
                thoughts = await game.wait_for("thoughts", lambda t: t["done"])
                assert thoughts["target"] == 8
                assert sum(thoughts["visits"]) >= 7
                best = thoughts["candidates"][0]
                assert best["line"][0] == best["move"] and best["visits"] == max(thoughts["visits"])

    asyncio.run(play())


def test_thoughts_are_given_on_demand_only(run):
    async def play():
        async with serving(run) as client, board(client, color="black", readouts=16) as game:
            await game.wait_for("position")
            await game.send(type="sgf")
            await game.wait_for("sgf")
            assert not any(message["type"] == "thoughts" for message in game.seen)
            await game.send(type="think", on=True)
            thoughts = await game.wait_for("thoughts", lambda t: t["done"])
            assert 0 <= thoughts["black_win_rate"] <= 1 and sum(thoughts["policy"]) == pytest.approx(1, abs=0.01)

    asyncio.run(play())


def test_handicap_stones_stand_on_different_points_and_white_begins():
    for size in (7, 9, 13, 19):
        for count in range(2, 10):
            assert len(set(handicap_stones(size, count))) == count
    state = BoardState.setup(CONFIG.game, [6, 18], (), WHITE)
    assert state.to_play == WHITE
    with pytest.raises(Refusal, match="none on so small a board"):
        handicap_stones(5, 2)


@pytest.mark.parametrize(
    "message, complaint",
    [
        ({"type": "new", "readouts": 10**9}, "readouts"),
        ({"type": "new", "readouts": "many"}, "readouts"),
        ({"type": "new", "komi": 1e300}, "komi"),
        ({"type": "new", "komi": 10**400}, "komi"),
        ({"type": "new", "komi": 7.3}, "komi"),
        ({"type": "new", "handicap": 2}, "handicap"),
        ({"type": "new", "color": ["black"]}, "color"),
        ({"type": "new", "model": "../../etc/passwd"}, "no model of that name"),
        ({"type": "new", "model": 7}, "model"),
        ({"type": "new", "moves": [12, 12]}, "occupied"),
        ({"type": "new", "moves": "12"}, "moves"),
        ({"type": "new", "moves": [True]}, "moves"),
        ({"type": "play", "move": 3}, "Begin a game"),
        ({"type": "sing"}, "type must be"),
        ({"kind": "new"}, "a type"),
        ([], "a type"),
    ],
)
def test_a_bad_message_gets_a_sentence_back(run, message, complaint):
    async def speak():
        async with serving(run) as client, board(client) as game:
            await game.socket.send_str(json.dumps(message))
            assert complaint in (await game.wait_for("error"))["message"]
            await game.send(type="new", color="both", readouts=1)
            await game.wait_for("position")

    asyncio.run(speak())


def test_leaves_of_many_boards_travel_in_one_batch(run):
    networks = Networks(run, CONFIG, most=1)
    try:
        network = networks.get(None)
        rng = np.random.default_rng(0)
        batches = [rng.integers(0, 2, (8, 5, 5, 17), dtype=np.uint8) for _ in range(12)]
        answers: dict = {}
        threads = [
            threading.Thread(target=lambda k=k: answers.update({k: network.evaluate(batches[k])})) for k in range(12)
        ]
        with networks._arrived:  # nothing is evaluated until all have asked
            for thread in threads:
                thread.start()
        for thread in threads:
            thread.join()
        assert 32 in network._evaluators  # the compiled size that takes four boards at once
        alone = load_evaluator(list_models(run)[0], 8, precision=CONFIG.inference.precision)
        for k, planes in enumerate(batches):
            for told, expected in zip(answers[k], alone.evaluate(planes)):
                assert np.allclose(told, expected, atol=1e-5)
    finally:
        networks.close()


def test_a_new_run_may_give_an_old_name_to_another_model(tmp_path):
    paths = make_run(tmp_path)
    networks = Networks(paths, CONFIG, most=1)
    try:
        first = networks.get(None)
        assert networks.get(None) is first
        description = next(paths.models.glob("*.json"))
        described = description.read_text(encoding="utf-8")
        description.write_text(described.replace('"games": 0', '"games": 7'), encoding="utf-8")
        os.utime(description, ns=(1, 1))  # another time, however coarse the clock of the file system
        games = {model["name"]: model["games"] for model in networks.describe()}
        assert networks.get(None) is not first and games[first.model.name] == 7
        shutil.rmtree(paths.models)
        with pytest.raises(Refusal, match="no model"):
            networks.get(first.model.name)
    finally:
        networks.close()


def test_without_a_model_the_page_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "SHIPPED", tmp_path / "nothing")

    async def visit():
        async with serving(RunPaths(tmp_path)) as client:
            site = await (await client.get("/api/site")).json()
            assert site["models"] == []
            async with board(client, color="black") as game:
                assert "no model" in (await game.wait_for("error"))["message"]
            game = await (await client.post("/api/games", data=GAME)).json()
            assert len(game["positions"]) == 7

    asyncio.run(visit())


def test_the_page_is_served_while_the_kernels_are_compiled(run, monkeypatch):
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()
    set_position = TreeSearch.set_position

    def compile_first(*arguments):
        begun.set()
        may_end.wait(20)
        ended.set()
        return set_position(*arguments)

    async def visit():
        async with serving(run) as client:
            await asyncio.to_thread(begun.wait)
            for path in ("/", "/api/site"):
                assert (await client.get(path)).status == 200
            opening = asyncio.create_task(client.ws_connect("/ws/play"))
            async with board(client, "/ws/watch") as watcher:
                await watcher.wait_for("run")
            assert not ended.is_set() and not opening.done()
            may_end.set()
            game = Board(await opening)
            await game.send(type="new", color="black", readouts=1)
            await game.wait_for("position")
            await game.socket.close()

    monkeypatch.setattr(TreeSearch, "set_position", compile_first)
    asyncio.run(visit())


# --- review -----------------------------------------------------------------------------------------------------------


def test_a_file_is_reviewed_with_variations_and_the_same_analysis_as_the_command(run):
    async def review():
        async with serving(run) as client:
            game = await (await client.post("/api/games", data=GAME)).json()
            assert (game["black"], game["white"], game["result"]) == ("Ada", "Bob", "W+3.5")
            assert game["positions"][1] == "............X............"
            assert game["comments"][2] == "close"
            async with board(client, "/ws/review") as reader:
                await reader.send(type="look", game=game["id"], move=2, variation=[7, 6], readouts=16)
                position = await reader.wait_for("position")
                assert position["stones"] == "......OX....X....O......." and position["to_play"] == BLACK
                thoughts = await reader.wait_for("thoughts", lambda t: t["done"])
                assert thoughts["readouts"] >= 16
                await reader.send(type="look", game=game["id"], move=2, variation=[7, 12, 6], question=3)
                position = await reader.wait_for("position")
                assert "occupied" in position["refused"] and position["question"] == 3
                assert position["variation"] == [7] and position["stones"] == ".......X....X....O......."
                await reader.send(type="analyze", game=game["id"], readouts=8)
                report = await reader.wait_for("report")
                assert len(report["positions"]) == 7
                assert report["positions"][-1]["loss"] is None and report["positions"][0]["loss"] >= 0
                assert 0 <= report["positions"][3]["black_win_rate"] <= 1

    asyncio.run(review())


def test_games_of_the_run_are_listed_and_opened(run):
    async def review():
        async with serving(run) as client:
            games = (await (await client.get("/api/games")).json())["games"]
            assert len(games) == 2 and games[0]["moves"] == 6 and games[0]["result"] == "W+3.5"
            game = await (await client.get("/api/games", params={"path": games[0]["path"]})).json()
            assert game["name"] == games[0]["path"] and len(game["moves"]) == 6

    asyncio.run(review())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"   ",
        b"hello",
        b"(;GM[1]SZ[5];B[zz])",
        b"(;GM[1]SZ[5];B[aa];W[aa])",
        b"(;SZ[99])",
        b"(;GM[2])",
        b"(" * 5000,
        b"\x00" * 100,
        "(;SZ[5]KM[wenig])".encode("utf-16"),
    ],
    ids=lambda data: repr(data[:16]),
)
def test_a_bad_file_gets_a_sentence_back(run, data):
    async def review():
        async with serving(run) as client:
            answer = await client.post("/api/games", data=data)
            assert answer.status == 422
            assert len((await answer.json())["error"]) > 10

    asyncio.run(review())


def test_a_game_on_another_board_can_be_looked_at_but_not_analysed(run):
    async def review():
        async with serving(run) as client, board(client, "/ws/review") as reader:
            game = await (await client.post("/api/games", data="(;SZ[9];B[ee];W[cc])")).json()
            await reader.send(type="look", game=game["id"], move=1)
            assert (await reader.wait_for("position"))["size"] == 9
            await reader.send(type="analyze", game=game["id"])
            assert "only 5x5" in (await reader.wait_for("error"))["message"]
            await reader.send(type="look", game="0" * 16, move=0)
            assert "open it again" in (await reader.wait_for("error"))["message"]

    asyncio.run(review())


# --- watch ------------------------------------------------------------------------------------------------------------


def generation_line(model, wins_a, wins_b, promoted=True):
    match = {"games": wins_a + wins_b, "wins_a": wins_a, "wins_b": wins_b, "draws": 0}
    return {"model": model, "promoted": promoted, "match": match, "length": 30.0, "validation": {"policy_loss": 3.0}}


def test_a_watched_run_tells_what_is_new_and_its_lock_is_left_alone(tmp_path):
    paths = make_run(tmp_path)

    async def watch():
        async with serving(paths) as client, board(client, "/ws/watch") as watcher:
            await watcher.send(type="hello")
            run = await watcher.wait_for("run")
            assert run["stage"] == "selfplay" and not run["running"]
            with lock_run(paths):  # a loop can begin while the page looks
                await watcher.wait_for("run", lambda run: run["running"])
                append_line(generations_log(paths), generation_line("000001-new-cod", 15, 5))
                rows = (await watcher.wait_for("generations", lambda m: len(m["generations"]) == 2))["generations"]
            assert rows[1]["elo_low"] < rows[1]["elo"] < rows[1]["elo_high"]

    asyncio.run(watch())


def test_watching_a_folder_without_a_run_says_so(tmp_path):
    async def watch():
        async with serving(RunPaths(tmp_path / "nothing")) as client, board(client, "/ws/watch") as watcher:
            assert "no run" in (await watcher.wait_for("run"))["missing"]
            assert (await watcher.wait_for("generations"))["generations"] == []

    asyncio.run(watch())


def test_a_page_that_takes_no_news_does_not_keep_others_waiting(tmp_path):
    paths = make_run(tmp_path)

    async def stuck(message):
        await asyncio.Event().wait()

    async def watch():
        async with serving(paths) as client:
            slow = client.page.watch.watcher(stuck)
            async with board(client, "/ws/watch") as watcher:
                await watcher.wait_for("run")
                append_line(generations_log(paths), generation_line("000001-new-cod", 15, 5))
                await watcher.wait_for("generations", lambda m: len(m["generations"]) == 2)
            await slow.close()

    asyncio.run(watch())


def test_elo_grows_less_certain_from_gate_to_gate_and_a_refused_model_does_not_count():
    lines = [generation_line("1", 15, 5), generation_line("2", 2, 18, promoted=False), generation_line("3", 15, 5)]
    rows = generations(lines, ["0", "1", "2", "3"], [])["generations"]
    widths = [row["elo_high"] - row["elo_low"] for row in rows]
    assert [row["elo"] for row in rows][:2] == [0, rows[1]["elo"]] and rows[2]["elo"] < rows[1]["elo"]
    assert abs(rows[3]["elo"] - 2 * rows[1]["elo"]) <= 1
    assert widths[0] == 0 < widths[1] < widths[3]


def test_the_ladders_ratings_come_before_the_gates():
    ladder = [("random", 0.0, 0.0), ("0@100", 10.0, 5.0), ("1@100", 300.0, 40.0), ("1@400", 500.0, 40.0)]
    told = generations([generation_line("1", 15, 5)], ["0", "1"], ladder)
    assert [row["elo"] for row in told["generations"]] == [10, 300]
    assert told["anchors"] == [{"player": "random", "elo": 0}]


def test_a_network_is_asked_under_all_symmetries(run):
    async def ask():
        async with serving(run) as client:
            model = list_models(run)[0].name
            answer = await (await client.post("/api/judge", json={"type": "judge", "model": model, "moves": []})).json()
            policy = np.array(answer["policy"])
            assert policy.sum() == pytest.approx(1, abs=0.01)
            square = policy[:25].reshape(5, 5)
            assert np.abs(square - square.T).max() <= 2e-4 and np.abs(square - square[::-1]).max() <= 2e-4
            wrong = await client.post("/api/judge", json={"type": "judge", "model": model, "moves": [3, 3]})
            assert wrong.status == 422 and "occupied" in (await wrong.json())["error"]

    asyncio.run(ask())


# --- limits -----------------------------------------------------------------------------------------------------------


def test_too_much_is_refused(run):
    limits = Limits(upload_bytes=2000, message_bytes=500, boards=2, message_burst=5, messages_per_second=1)

    async def ask():
        async with serving(run, limits) as client:
            answer = await client.post("/api/games", data=GAME + " " * 3000)
            assert answer.status == 413
            async with board(client) as first, board(client, "/ws/watch"):
                with pytest.raises(aiohttp.WSServerHandshakeError) as third:
                    await client.ws_connect("/ws/play")
                assert third.value.status == 503
                await first.send(type="new", model="x" * 600)
                assert (await first.socket.receive()).data == aiohttp.WSCloseCode.MESSAGE_TOO_BIG
            async with board(client) as hasty:
                for _ in range(20):
                    await hasty.send(type="sgf")
                while (message := await hasty.socket.receive()).type is aiohttp.WSMsgType.TEXT:
                    pass
                assert message.data == aiohttp.WSCloseCode.POLICY_VIOLATION

    asyncio.run(ask())


def test_a_board_at_which_nothing_happens_is_closed(run):
    async def wait():
        async with serving(run, Limits(idle_seconds=0.3)) as client, board(client) as game:
            closed = await game.socket.receive(timeout=300)
            assert closed.type is aiohttp.WSMsgType.CLOSE and closed.extra == "idle"

    asyncio.run(wait())


def test_a_bucket_lets_a_burst_through_and_then_a_trickle():
    bucket = Bucket(per_second=0.001, burst=3)
    assert [bucket.take() for _ in range(5)] == [True, True, True, False, False]


# --- who may ask ------------------------------------------------------------------------------------------------------


def test_other_names_and_other_sites_are_turned_away(run):
    async def ask():
        async with serving(run) as client:
            host = f"127.0.0.1:{client.port}"
            for bad in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::1", "", "localhost.evil"):
                assert (await client.get("/api/site", headers={"Host": bad})).status == 421, bad
            for good in (host, f"localhost:{client.port}", f"[::1]:{client.port}"):
                assert (await client.get("/api/site", headers={"Host": good})).status == 200
            for origin in (
                "http://evil.example",
                "null",
                f"https://{host}",
                "http://127.0.0.1:1",
                f"http://{host}.evil",
            ):
                refused = await client.post("/api/games", data=GAME, headers={"Origin": origin})
                assert refused.status == 403, origin
                with pytest.raises(aiohttp.WSServerHandshakeError) as shake:
                    await client.ws_connect("/ws/play", headers={"Origin": origin})
                assert shake.value.status == 403
            assert (await client.get("/api/site", headers={"Sec-Fetch-Site": "cross-site"})).status == 403
            async with client.ws_connect("/ws/play", headers={"Origin": f"http://{host}"}) as socket:
                await socket.send_str("no JSON")
                assert (await socket.receive_json())["type"] == "error"

    asyncio.run(ask())


def test_every_answer_forbids_foreign_code(run):
    async def ask():
        async with serving(run) as client:
            for path in ("/", "/static/main.js", "/charts/d3.js", "/api/site", "/nowhere", "/ws/play", "/api/judge"):
                answer = await client.get(path)
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy and "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.status < 500 and (answer.status == 200 or "error" in await answer.json())

    asyncio.run(ask())


@pytest.mark.parametrize(
    "head, status",
    [
        ("POST /api/games\nContent-Encoding: gzip\nContent-Length: 4", 400),
        ("GET /?token=%ff%fe", 401),
        ("GET /\nCookie: alphago_zero_token=\xff\xfe", 401),
        ("GET /\nHost: evil.example", 400),
        ("GET /\nOrigin: \xff", 403),
    ],
)
def test_a_malformed_request_is_refused_and_is_no_fault_of_the_server(run, head, status):
    async def ask():
        token = "open sesame" if status == 401 else None
        async with serving(run, token=token) as client:
            line, *headers = head.split("\n")
            body = "abcd" if line.startswith("POST") else ""
            lines = [f"{line} HTTP/1.1", f"Host: 127.0.0.1:{client.port}", "Connection: close", *headers, "", body]
            answer = await raw_request(client.port, "\r\n".join(lines).encode("latin-1"))
            assert answer.split(b" ", 2)[1] == str(status).encode(), answer

    asyncio.run(ask())


def test_a_token_is_asked_for_and_goes_into_a_cookie(run):
    async def ask():
        async with serving(run, token="open sesame") as client:
            assert (await client.get("/api/site")).status == 401
            assert (await client.get("/", params={"token": "open season"})).status == 401
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await client.ws_connect("/ws/play")
            welcome = await client.get("/", params={"token": "open sesame"}, allow_redirects=False)
            assert welcome.status == 303 and welcome.headers["Location"] == "/"
            assert "HttpOnly" in welcome.headers["Set-Cookie"] and "SameSite=Strict" in welcome.headers["Set-Cookie"]
            cookie = {"Cookie": welcome.headers["Set-Cookie"].split(";")[0]}
            assert (await client.get("/api/site", headers=cookie)).status == 200
            assert (await client.get("/api/site", headers={**cookie, "Host": "evil.example"})).status == 421

    asyncio.run(ask())


async def raw_get(port: int, target: str) -> bytes:
    request = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    return await raw_request(port, request.encode("latin-1"))


async def raw_request(port: int, request: bytes) -> bytes:
    """The answer to a request that nobody tidies up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 300)
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
    return answer


def test_no_path_leaves_the_folder_of_games(tmp_path):
    paths = make_run(tmp_path / "run")
    secret = tmp_path / "secret.sgf"
    secret.write_text(GAME.replace("Ada", "Secret"), encoding="utf-8")
    folder = paths.data / "sgf"
    (folder / "link.sgf").symlink_to(secret)
    (folder / "away").symlink_to(tmp_path)
    (folder / "ring.sgf").symlink_to(folder / "ring.sgf")
    (folder / "inside.sgf").symlink_to(next(folder.glob("*/clean/00000000.sgf")))
    os.mkfifo(folder / "pipe.sgf")
    dots = ("..", "%2e%2e", "%2E.", "..%00", "%252e%252e", "%c0%ae%c0%ae", ".%2e", "\uff0e\uff0e")
    slashes = ("/", "%2f", "%5c", "\\", "%252f", "//", "/./", "%c0%af")
    steps = [quote(dot + slash, safe="%/\\") for dot in dots for slash in slashes]
    names = [step * depth + "secret.sgf" for step in steps for depth in (3, 6)]
    names += [step * 8 + "etc/passwd" for step in steps]
    names += [quote(str(secret)), "link.sgf", "away/secret.sgf", "ring.sgf", "pipe.sgf", "%00", "", ".", "away"]
    names += ["x" * 5000, "x" * 9000, "file:///etc/passwd", "~/secret.sgf", "CON", "a%00.sgf"]

    async def ask():
        async with serving(paths) as client:
            targets = [f"/api/games?path={name}" for name in names]
            targets += ["/static/" + "x" * 5000, "/static/", "/static/.", "/static/%2e%2e", "/static/a%00"]
            targets += [prefix + step * 8 + "etc/passwd" for step in steps for prefix in ("/static/", "/", "/charts/")]
            for target in targets:
                answer = await raw_get(client.port, target)
                status = int(answer.split(b" ", 2)[1])
                assert 400 <= status < 500, (target, answer[:200])
                assert b"Secret" not in answer and b"root:" not in answer, target
            assert (await client.get("/api/games", params={"path": "inside.sgf"})).status == 200

    asyncio.run(ask())


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_tells_a_mistake_in_one_line(run):
    def serve(*arguments):
        command = [sys.executable, "controller.py", "serve", "--run-dir", str(run.root), *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)

    for arguments, complaint in (
        (["no-such-model"], "no model no-such-model"),
        (["--token", "short"], "--token"),
        (["--address", "203.0.113.7"], "cannot listen"),
    ):
        done = serve(*arguments)
        assert done.returncode == 2 and complaint in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_another_address_than_loopback_demands_a_token(run):
    with server_process(run.root, "--address", "0.0.0.0") as (url, _):
        address, _, token = url.partition("?token=")
        assert len(token) >= 16

        async def ask():
            async with aiohttp.ClientSession() as session:
                local = address.replace("0.0.0.0", "127.0.0.1")
                assert (await session.get(local)).status == 401
                welcome = await session.get(local, params={"token": token}, allow_redirects=False)
                assert welcome.status == 303

        asyncio.run(ask())
