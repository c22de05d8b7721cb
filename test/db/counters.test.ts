// Compares counters and sorted list keys with their tables.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { startServer } from '#api/server.ts'
import { ident, sql } from '#db/sql.ts'
import { operatorUid, signAccessToken } from '#issuer/access-token.ts'
import { createApp } from '../../src/create-app.ts'
import { checkLists } from '../support/check-lists.ts'
import { type Client, clientOf, onPostgres, startPinfold } from '../support/pinfold.ts'
import { oneOf, type Random, randomFrom } from '../support/random.ts'
import { plantManifest } from '../support/tags.ts'

const operations = 400
const inFlight = 16

/** Creates, renames and deletes at random. There are only a few names, so requests conflict often. */
async function storm(clients: readonly Client[], random: Random): Promise<Record<string, number>> {
  const groups: string[] = ['']
  const repos: string[] = []
  const answers: Record<string, number> = {}
  const pick = (from: readonly string[]) => oneOf(random, from)
  const name = () => `n${random.below(12)}`

  async function one(client: Client): Promise<void> {
    const dice = random.below(100)
    const [group, repo] = [pick(groups), pick(repos) ?? '']
    const [what, answer, made] = await (async () => {
      if (dice < 25) return ['group', await client.post(`/iam/v2/groups/${group}`, { name: name() }), groups] as const
      if (dice < 60) return ['repo', await client.post(`/registry/v2/repos/${group}`, { name: name() }), repos] as const
      if (dice < 70) return ['rename', await client.patch(`/iam/v2/groups/${group}`, { name: name() })] as const
      if (dice < 80)
        return ['describe', await client.patch(`/registry/v2/repos/${repo}`, { description: 'x' })] as const
      if (dice < 90) return ['drop repo', await client.delete(`/registry/v2/repos/${repo}`)] as const
      return ['drop group', await client.delete(`/iam/v2/groups/${group}`)] as const
    })()
    assert.ok(answer.status < 500, answer.text)
    if (answer.status === 200 && made) made.push(answer.body.uid)
    const key = `${what} ${answer.status}`
    answers[key] = (answers[key] ?? 0) + 1
  }

  let left = operations
  const lane = async (i: number) => {
    while (left-- > 0) await one(clients[i % clients.length]!)
  }
  await Promise.all(Array.from({ length: inFlight }, (_, i) => lane(i)))
  return answers
}

test('counters and keys equal the tables after any mix of concurrent changes', async () => {
  await using pinfold = await startPinfold()
  const seed = randomInt(2 ** 31)
  const answers = await storm([pinfold.operator], randomFrom(seed))
  const done = (what: string) => answers[`${what} 200`] ?? 0
  const enough = ['group', 'repo', 'rename', 'describe', 'drop repo', 'drop group'].every((what) => done(what) > 0)
  assert.ok(enough && (answers['repo 409'] ?? 0) > 0, `seed ${seed}: ${JSON.stringify(answers)}`)
  await checkLists(pinfold)
})

test('counters and keys equal the tables for each kind of tag name', async () => {
  await using pinfold = await startPinfold()
  const { seed, operator } = pinfold
  const seeded = randomInt(2 ** 31)
  const random = randomFrom(seeded)
  const folder = (await seed.group((await seed.group()).uid)).uid
  const repos: string[] = await Promise.all(Array.from({ length: 4 }, async () => (await seed.repo(folder)).uid))
  const digests = new Map<string, string[]>()
  for (const repo of repos)
    digests.set(repo, [await plantManifest(pinfold, repo, 'a'), await plantManifest(pinfold, repo, 'b')])
  const names = ['latest', '1.0', '1.0-r0', '1.0-20260101', 'sha256-0', 'sha256-0-r1']
  const tags: string[] = []
  const done: Record<string, number> = {}

  let left = operations
  const lane = async () => {
    while (left-- > 0) {
      const repo = repos[random.below(repos.length)]!
      const remove = tags.length > 0 && random.below(100) < 30
      const tag = { name: names[random.below(names.length)], digest: digests.get(repo)![random.below(2)] }
      const answer = remove
        ? await operator.delete(`/registry/v2/tags/${tags[random.below(tags.length)]}`)
        : await operator.post(`/registry/v2/tags/${repo}`, { ...tag, deprecated: random.below(3) === 0 })
      assert.ok(answer.status < 500, answer.text)
      if (!remove && answer.status === 200) tags.push(answer.body.uid)
      done[`${remove} ${answer.status}`] = (done[`${remove} ${answer.status}`] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
  assert.ok(done['true 200']! > 20 && done['false 200']! > 100, `seed ${seeded}: ${JSON.stringify(done)}`)
  await checkLists(pinfold)

  assert.equal((await operator.delete(`/registry/v2/repos/${repos[0]}`)).status, 200)
  await checkLists(pinfold)
})

test('two servers on one database share one set of counters', { skip: !onPostgres }, async () => {
  await using pinfold = await startPinfold()
  const app = await createApp({ ...pinfold.app.config, listen: { host: '127.0.0.1', port: 0 } })
  const server = await startServer(app)
  try {
    const [issuer, audience] = [server.url, server.url]
    const token = await signAccessToken(app.keyring, { issuer, audience, subject: operatorUid, now: app.clock() })
    const seed = randomInt(2 ** 31)
    const answers = await storm([pinfold.operator, clientOf(server.url, token)], randomFrom(seed))
    assert.ok((answers['repo 200'] ?? 0) > 20, `seed ${seed}: ${JSON.stringify(answers)}`)
    await checkLists(pinfold)
  } finally {
    await server.close()
    await app.close()
  }
})

test('deletes the members of a group with it, and the test detects wrong counters', async () => {
  await using pinfold = await startPinfold()
  const { seed, operator } = pinfold
  const root = (await seed.group()).uid
  const folder = (await seed.group(root)).uid
  const role = await seed.role(root, ['repo.list'])
  const identity = await seed.member(root, role.uid)
  await seed.binding(folder, identity.uid, role.uid)
  await operator.patch(`/iam/v2/identities/${identity.uid}`, { description: 'new' })
  await operator.patch(`/iam/v2/roles/${role.uid}`, { name: 'renamed' })
  await checkLists(pinfold)

  assert.equal((await operator.delete(`/iam/v2/identities/${identity.uid}`)).status, 200)
  assert.equal((await operator.delete(`/iam/v2/groups/${folder}`)).status, 200)
  await checkLists(pinfold)
  for (const table of ['list_keys', 'list_counts']) {
    await pinfold.app.db.tx(async (tx) => {
      const column = ident(table === 'list_keys' ? 'value' : 'place')
      await tx.run(
        sql`UPDATE ${ident(table)} SET ${column} = 'drift' WHERE ${column} = (SELECT max(${column}) FROM ${ident(table)})`,
      )
    })
    await assert.rejects(checkLists(pinfold), assert.AssertionError)
  }
})
