// Delivers events to a receiver that fails at random, from a server that is killed repeatedly. Afterwards every event of the
// outbox must have arrived, in order for each subject. An event that arrived twice must have had the same id. To run it by hand:
//   bin/pinfold-node test/fuzz/deliveries.ts --events 100000 --kills 20
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openDb } from '#db/open.ts'
import { sql } from '#db/sql.ts'
import { type Client, clientOf } from '../support/pinfold.ts'
import { createStorage, freeAddress, type Process, startProcess, tokenOf } from '../support/process.ts'
import { type Answer, startReceiver } from '../support/receiver.ts'

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '100000' },
    kills: { type: 'string', default: '20' },
    failing: { type: 'string', default: '30' },
    subjects: { type: 'string', default: '400' },
    clients: { type: 'string', default: '24' },
  },
})
const [events, kills, failing, subjects, clients] = ['events', 'kills', 'failing', 'subjects', 'clients'].map((name) =>
  Number(values[name as keyof typeof values]),
) as [number, number, number, number, number]

const env = {
  PINFOLD_ALLOW_PRIVATE_ADDRESSES: 'on',
  PINFOLD_ALLOW_INSECURE_SINKS: 'on',
  PINFOLD_DELIVERY_RETRY_MIN_MS: '5',
  PINFOLD_DELIVERY_RETRY_MAX_MS: '200',
  PINFOLD_DELIVERY_TIMEOUT_MS: '2000',
}
const failures: (Answer | undefined)[] = [{ status: 500 }, { status: 404 }, { status: 429 }, 'cut']

await using storage = await createStorage()
await using receiver = await startReceiver(() => {
  return Math.random() * 100 < failing ? failures[Math.floor(Math.random() * failures.length)] : undefined
}, true)
const listen = await freeAddress()
console.log(storage.database ? 'PostgreSQL' : 'SQLite')

let server: Process = await startProcess(storage, { env, listen })
const client = clientOf(server.url, await tokenOf(storage))
const org = (await client.post('/iam/v2/groups/', { name: 'acme' })).body.uid as string
const repos: string[] = []
for (let i = 0; i < subjects; i++) {
  repos.push((await client.post(`/registry/v2/repos/${org}`, { name: `repo${i}` })).body.uid)
}
const made = await client.post(`/events/v2/subscriptions/${org}`, { sink: receiver.url })
assert.equal(made.status, 200, made.text)
const subscription = made.body.uid as string

const began = performance.now()
let acknowledged = 0
/** Changes one repository after the other. Does not repeat a request without an answer. */
async function write(caller: Client, own: readonly string[]): Promise<void> {
  for (let i = 0; acknowledged < events; i++) {
    const change = { description: `${i}` }
    const answer = await caller.patch(`/registry/v2/repos/${own[i % own.length]}`, change).catch(() => undefined)
    if (answer?.status === 200) acknowledged++
    else if (answer && answer.status !== 503) throw new Error(answer.text)
    else await sleep(50)
  }
}

async function killNow(round: number): Promise<void> {
  server.kill('SIGKILL')
  await server.exited
  await storage.settled()
  server = await startProcess(storage, { env, listen })
  const seconds = Math.round((performance.now() - began) / 1000)
  console.log(`kill ${round} after ${seconds} s: ${acknowledged} acknowledged, ${receiver.got.length} requests`)
}

const writing = Promise.all(
  Array.from({ length: clients }, (_, i) =>
    write(
      client,
      repos.filter((_, j) => j % clients === i),
    ),
  ),
)
for (let round = 1; round <= kills; round++) {
  const due = Math.floor((events * round) / (kills + 1))
  while (acknowledged < due) await sleep(20)
  await killNow(round)
}
await writing
const db = await openDb({ database: storage.database, file: `${storage.data}/pinfold.db` })
type Row = { uuid: string; subject: string }
const wanted = await db.all<Row>(sql`
  SELECT uuid, subject FROM events_outbox WHERE type LIKE ${'%.repo.updated.v1'} ORDER BY id`)
await db.close()
console.log(`${acknowledged} acknowledged, ${wanted.length} written; waiting for the rest`)
assert.ok(wanted.length >= acknowledged)
const isWanted = new Set(wanted.map(({ uuid }) => uuid))
const arrived = () => receiver.accepted().filter(({ id }) => isWanted.has(id))
for (let last = -1, now = 0; now < wanted.length; ) {
  await sleep(2000)
  now = arrived().length
  if (now === last) console.log(`stands at ${now}`)
  last = now
}

const orderOf = (rows: readonly { id: string; subject: string }[]) => Map.groupBy(rows, ({ subject }) => subject)
const [was, is] = [orderOf(wanted.map(({ uuid, subject }) => ({ id: uuid, subject }))), orderOf(arrived())]
for (const [subject, rows] of was) {
  assert.deepEqual(
    is.get(subject)?.map(({ id }) => id),
    rows.map(({ id }) => id),
  )
}
const answered = receiver.got.filter(({ status }) => status === 200).length
const seconds = (performance.now() - began) / 1000
const { body } = await client.get(`/events/v2/subscriptions/${subscription}/settings`)
console.log(
  `nothing lost, all in order: ${wanted.length} events of ${was.size} subjects in ${Math.round(seconds)} s, ` +
    `${receiver.got.length} requests, ${answered - receiver.accepted().length} delivered twice, ` +
    `${body.waiting} waiting, ${body.givenUp} given up`,
)
server.kill('SIGTERM')
await server.exited
