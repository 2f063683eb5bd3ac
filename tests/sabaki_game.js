// A whole game between two GTP programs, kept by Sabaki's own client (npm install @sabaki/gtp).
// Usage: node sabaki_game.js SIZE KOMI '["program", "argument", ...]' '["program", ...]'   Black's and White's.
// Prints, as JSON, the moves, what each program says about itself, the board and the score, and an analysis.
const {Controller} = require('@sabaki/gtp')

const [size, komi] = process.argv.slice(2, 4)
const programs = process.argv.slice(4, 6).map(text => JSON.parse(text))

async function main() {
  const players = programs.map(([program, ...args]) => new Controller(program, args))
  const ask = async (player, name, ...args) => {
    const response = await player.sendCommand({name, args})
    if (response.error) throw new Error(`${name} ${args.join(' ')}: ${response.content}`)
    return response.content
  }
  const both = (name, ...args) => Promise.all(players.map(player => ask(player, name, ...args)))

  players.forEach(player => player.start())
  const names = await both('name')
  await both('boardsize', size)
  await both('clear_board')
  await both('komi', komi)

  const moves = []
  let passes = 0
  while (passes < 2 && moves.length < 3 * size * size) {
    const turn = moves.length % 2
    const color = 'BW'[turn]
    const vertex = (await ask(players[turn], 'genmove', color)).trim()
    moves.push(vertex)
    if (vertex.toLowerCase() === 'resign') break
    await ask(players[1 - turn], 'play', color, vertex)
    passes = vertex.toLowerCase() === 'pass' ? passes + 1 : 0
  }
  const black = (await both('list_stones', 'black')).map(text => text.split(/\s+/).sort().join(' '))
  const scores = await both('final_score')

  // Analysis as Sabaki asks for it: lines come until the next command does.
  await ask(players[0], 'clear_board')
  const lines = []
  const analysis = players[0].sendCommand({name: 'lz-analyze', args: ['B', '10']}, ({line}) => lines.push(line))
  while (lines.filter(line => line.startsWith('info')).length < 3) await new Promise(done => setTimeout(done, 50))
  await ask(players[0], 'name')
  await analysis
  await Promise.all(players.map(player => player.stop()))
  console.log(JSON.stringify({names, moves, black, scores, analysis: lines}))
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
