// Growth of the database by pulls without a subscription, and the rate of these pulls. By hand: bin/pinfold-node
// test/fuzz/pulls.ts --pulls 1000000. A million must add less than 5 MB.
import { readdirSync, statSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { jobs } from '../../src/workers.ts'
import { startRegistry } from '../support/registry.ts'

const { values } = parseArgs({
  options: { pulls: { type: 'string', default: '100000' }, clients: { type: 'string', default: '32' } },
})
const [pulls, clients] = [Number(values.pulls), Number(values.clients)]

await using registry = await startRegistry({ jobs: [...jobs] })
const { pusher, puller, app, port } = registry
const { digest } = await pusher.pushImage('acme/app', 'v1')
const paths = ['v1', digest].map((reference) => `/v2/acme/app/manifests/${reference}`)
const agent = new Agent({ keepAlive: true, maxSockets: clients })
const headers = { authorization: `Bearer ${puller.token}` }

const pullOnce = (path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const req = request({ agent, host: '127.0.0.1', port, path, headers }, (res) => {
      if (res.statusCode !== 200) reject(new Error(`${path} answered ${res.statusCode}`))
      res.resume().on('end', resolve)
    })
    req.on('error', reject).end()
  })

/** Size of the database, including the write-ahead log of SQLite. */
const bytes = (): number =>
  readdirSync(app.config.data)
    .filter((file) => file.startsWith('pinfold.db'))
    .reduce((sum, file) => sum + statSync(join(app.config.data, file)).size, 0)

await pullOnce(paths[0]!)
const before = bytes()
const began = performance.now()
let done = 0
await Promise.all(
  Array.from({ length: clients }, async () => {
    while (done < pulls) await pullOnce(paths[done++ % paths.length]!)
  }),
)
const seconds = (performance.now() - began) / 1000
await app.usage.flush()
const grown = bytes() - before
process.stdout.write(
  `${done} pulls in ${seconds.toFixed(0)} s (${Math.round(done / seconds)}/s): the database grew by ${grown} bytes\n`,
)
if (grown > 5_000_000) process.exitCode = 1
agent.destroy()
