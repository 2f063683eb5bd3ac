// Every word that the page says.

const COLUMNS = "ABCDEFGHJKLMNOPQRST";

/** "D5", or "pass". */
export function pointName(move, size) {
  if (move === size * size) return "pass";
  return COLUMNS[move % size] + String(size - Math.floor(move / size));
}
export const columnName = (column) => COLUMNS[column];

const colors = { 1: "Black", 2: "White" };
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const plural = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** A model of a run by its number, anybody else by name. */
const player = (name) => /^\d+-/.test(name) ? String(Number.parseInt(name, 10)) : name;

/** "Match 3 – 2, game 12" */
function gameName({ path, black, white, match }) {
  const number = path.split("/").pop().replace(/^0+(?=\d)|\.sgf$/g, "");
  return `${match ? `Match ${player(black)} – ${player(white)}` : `Self-play of ${player(black)}`}, game ${number}`;
}

export const text = {
  title: "AlphaGo Zero",
  tagline: "Go, learned from nothing but its rules",
  tabs: { play: "Play", review: "Review", watch: "Watch it learn" },
  navigation: "Parts of the page",
  skip: "Skip to the content",
  theme: "Theme",
  themes: { auto: "System", light: "Light", dark: "Dark" },
  color: (color) => colors[color],
  percent,
  offline: "The server does not answer.",
  refused: (status) => `The server refused (${status}).`,
  reconnecting: "The server does not answer; trying again …",
  idle: "Nothing happened for long, so the board went to sleep. Any action wakes it.",
  hasty: "That was too much at once, so the board went to sleep. Any action wakes it.",

  board: {
    label: (size) => `Go board, ${size} by ${size}`,
    help: "Arrow keys move, Enter plays, P passes, U takes back.",
    empty: "empty",
    stone: { X: "black stone", O: "white stone" },
    last: "last move",
    dead: "dead",
  },

  play: {
    heading: "Play",
    yourTurn: "Your turn",
    turnOf: (color) => `${colors[color]} to play`,
    thinking: "Thinking …",
    loading: "Setting up …",
    youAreBoth: "You play both sides",
    you: "You",
    captured: (count) => `${count} captured`,
    noModel: "No model yet",
    against: (model, readouts) => `against ${model}, ${plural(readouts, "readout", "readouts")}`,
    passed: (color) => `${colors[color]} passed`,
    moveNumber: (number) => `Move ${number}`,
    pass: "Pass",
    undo: "Undo",
    resign: "Resign",
    count: "Count",
    save: "Save SGF",
    newGame: "New game",
    start: "Start",
    color: "Your colour",
    colors: { black: "Black", white: "White", both: "Both" },
    model: "Opponent",
    readouts: "Readouts a move",
    komi: "Komi",
    handicap: "Handicap",
    noHandicap: "none",
    stones: (count) => `${count} stones`,
    modelName: (model, isDefault) => `${model.name}${isDefault ? " (best)" : ""} · ${model.size}×${model.size}`,
    komiHint: (komi) => `The network learned with komi ${komi}.`,
    wonBy: (result) => {
      if (result === "0") return "A draw";
      const winner = result[0] === "B" ? "Black" : "White";
      const margin = result.slice(2);
      if (margin === "R") return `${winner} wins by resignation`;
      return margin ? `${winner} wins by ${margin}` : `${winner} wins`;
    },
    estimate: (result) => text.play.wonBy(result).replace("wins by", "is ahead by"),
    counting: "Counting …",
    dead: (count) => plural(count, "dead stone", "dead stones"),
    played: (color, point) => point === "pass" ? `${colors[color]} passes.` : `${colors[color]} plays ${point}.`,
    fileName: "game.sgf",
  },

  thoughts: {
    heading: "The engine’s thoughts",
    show: "Show on the board",
    views: { off: "Off", visits: "Visits", policy: "Policy" },
    hint: "Point at a move in the table to see how it would go on; click its name to play it.",
    bar: (share) => `Black ${percent(share)}, White ${percent(1 - share)}`,
    noBar: "not known yet",
    curve: "Black’s chance to win, move by move",
    move: "Move",
    visits: "Visits",
    policy: "Policy",
    chance: "Win",
    best: "Best moves",
    progress: (done, target) => `${Math.min(done, target).toLocaleString("en")} of ${target.toLocaleString("en")} readouts`,
    analyzed: "From the analysis of the game.",
    nothing: "No search here yet.",
  },

  review: {
    heading: "Review",
    open: "Open an SGF file",
    orDrop: "or drop one on the page",
    tooLarge: (bytes) => `A game has at most ${(bytes / 1e6).toLocaleString("en")} MB; this file is larger.`,
    run: "Games of this run",
    pick: "Choose a game …",
    none: "No games yet",
    item: (game) => `${gameName(game)} · ${game.result} · ${plural(game.moves, "move", "moves")}`,
    noGame: "Open a game to look through it.",
    players: (game) => `${game.black || "Black"} – ${game.white || "White"}`,
    facts: (game) => `${game.size}×${game.size}, komi ${game.komi}, result ${game.result}`,
    slider: "Move",
    position: (number, total) => `Move ${number} of ${total}`,
    first: "First position",
    previous: "Previous move",
    next: "Next move",
    last: "Last position",
    analyze: "Analyse the game",
    analyzing: (done, total) => `Analysed ${done} of ${total} positions`,
    model: "Model",
    readouts: "Readouts a position",
    mistakes: "Mistakes",
    noMistakes: "None found yet.",
    cleanGame: "No move lost 10 % or more.",
    mistake: (number, color, point, loss) => `${number}. ${colors[color]} ${point}: −${percent(loss)}`,
    better: (point) => `better ${point}`,
    variation: (length) => `Variation, ${plural(length, "move", "moves")}`,
    back: "Back to the game",
    undo: "Take back",
    try: "Play on the board to try a variation.",
    comment: "Comment in the file",
  },

  watch: {
    heading: "Watch it learn",
    loading: "Reading …",
    stages: {
      initialize: "Making the first model", selfplay: "Self-play", train: "Training", evaluate: "Evaluation",
    },
    running: "at work",
    stopped: "stopped",
    generation: "Generation",
    games: "Games",
    positions: "Positions",
    best: "Best model",
    hours: "Hours",
    disk: "On disk",
    megabytes: (value) => `${value.toLocaleString("en")} MB`,
    progress: (done, total) => `${done.toLocaleString("en")} of ${total.toLocaleString("en")} games for this generation`,
    charts: "Curves",
    elo: "Elo",
    eloHint: "band: 95 %",
    eloSources: { gate: "over random weights, by the gate’s matches", ladder: "by the ladder’s games",
      none: "no match yet; controller.py ladder rates the models" },
    losses: "Loss",
    lossHint: "on games kept out of training",
    policyLoss: "policy",
    valueLoss: "value",
    length: "Moves a game",
    lengthHint: "self-play",
    entropy: "Entropy",
    entropyHint: "of search π and network p",
    piEntropy: "π",
    pEntropy: "p",
    throughput: "Throughput",
    throughputHint: "moves of self-play a second",
    winners: "Black wins",
    winnersHint: "share of self-play games",
    noData: "No figures yet",
    gates: "Gate",
    noGates: "No match was played yet.",
    gateModel: "Model",
    gateScore: "Score",
    gateVerdict: "Verdict",
    promoted: "new best",
    refused: "refused",
    ungated: "no match",
    table: "All figures as a table",
    latest: "Latest games",
    game: gameName,
    latestHint: "Click one to replay it.",
    moves: (count) => plural(count, "move", "moves"),
    noGames: "No game is finished yet.",
    lab: "One position, every generation",
    labHint: "Play on the board to choose the position. Each small board shows where a network would play before any search, and how it judges the position.",
    labBoard: "Position to judge",
    clear: "Empty board",
    compare: "Compare two models",
    modelA: "First model",
    modelB: "Second model",
    judged: (name, share) => `${name}: Black ${percent(share)}`,
    black: (share) => `Black ${percent(share)}`,
  },
};
