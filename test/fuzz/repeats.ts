// Kills a server in the middle of requests with an idempotency key, and sends each of them again up to five times. Each request
// must be carried out once and have one event. By hand: bin/pinfold-node test/fuzz/repeats.ts --rounds 20 --requests 500. It uses
// PostgreSQL if PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { openDb } from '#db/open.ts'
import { sql } from '#db/sql.ts'
import { type Answer, clientOf } from '../support/pinfold.ts'
import { createStorage, freeAddress, startProcess, tokenOf } from '../support/process.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '20' }, requests: { type: 'string', default: '500' } },
})
const [rounds, requests] = [Number(values.rounds), Number(values.requests)]
const tries = 5

await using storage = await createStorage()
console.log(storage.database ? 'PostgreSQL' : 'SQLite')
// All servers of a database must have the same URL.
const listen = await freeAddress()
const made = new Set<string>()
const sum = { again: 0, lost: 0 }

for (let round = 1; round <= rounds; round++) {
  const names = Array.from({ length: requests }, (_, i) => `round-${round}-${i}`)
  const open = new Map(names.map((name) => [name, 0]))
  const answers = new Map<string, string>()
  while (open.size > 0) {
    await using server = await startProcess(storage, { listen })
    const client = clientOf(server.url, await tokenOf(storage))
    const isLast = [...open.values()].some((sent) => sent >= tries - 1)
    const killAfter = isLast ? Number.POSITIVE_INFINITY : Math.ceil(open.size * Math.random())
    let answered = 0
    const send = async (name: string): Promise<void> => {
      open.set(name, open.get(name)! + 1)
      const answer: Answer | undefined = await client
        .call('POST', '/iam/v2/groups/', { name }, { 'idempotency-key': name })
        .catch(() => undefined)
      if (!answer) return
      const isLost = answer.status === 409 && answer.text.includes('ANSWER_UNKNOWN')
      assert.ok(answer.status === 200 || isLost, answer.text)
      if (isLost) sum.lost++
      else answers.set(name, answer.text)
      open.delete(name)
      made.add(name)
      if (++answered === killAfter) server.kill('SIGKILL')
    }
    await Promise.all([...open.keys()].map(send))
    sum.again += open.size
    // If the answer came before the kill, the same answer must come after it.
    if (isLast) {
      for (const [name, text] of [...answers].slice(0, 20)) {
        const again = await client.call('POST', '/iam/v2/groups/', { name }, { 'idempotency-key': name })
        assert.equal(again.text, text)
      }
    }
    server.kill('SIGKILL')
    await server.exited
    await storage.settled()
  }
  await checkOnce()
  console.log(`round ${round}: ${made.size} groups, ${sum.again} requests sent again, ${sum.lost} answers lost`)
}
console.log(`each of ${made.size} requests was carried out once and told of once`)

async function checkOnce(): Promise<void> {
  const db = await openDb({ database: storage.database, file: `${storage.data}/pinfold.db` })
  try {
    const groups = await db.all<{ name: string }>(sql`SELECT name FROM groups WHERE name LIKE 'round-%'`)
    assert.equal(groups.length, made.size)
    assert.equal(new Set(groups.map(({ name }) => name)).size, made.size)
    const [events] = await db.all<{ n: number }>(
      sql`SELECT count(*) AS n FROM events_outbox WHERE type LIKE '%iam.group.created%'`,
    )
    assert.equal(Number(events!.n), made.size)
  } finally {
    await db.close()
  }
}
