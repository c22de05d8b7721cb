// The tag history outlives its repo: access to it, continuation by a new repo, and deletion.
import assert from 'node:assert/strict'
import { after, mock, test } from 'node:test'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { checkLists } from '../support/check-lists.ts'
import { assertBlocked, assertDenied, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import { digestOf, ledgerOf, manifestType, plantTag } from '../support/tags.ts'

const start = Date.parse('2026-05-01T10:00:00.000Z')
const minute = (i: number): string => new Date(start + i * 60_000).toISOString()
const deletedType = 'registry.pinfold.dev/DeletedRepo'
const erased = 'dev.pinfold.control.registry.ledger.erased.v1'
const path = '/registry/v2/deletedRepos'

let now = start
const { pinfold, operator } = await startScene({ clock: () => new Date(now) })
/** A registry client of the operator. */
const reader = await pinfold.as(operatorUid, { audience: new URL(pinfold.url).host })
after(() => pinfold[Symbol.asyncDispose]())

const at = (i: number): void => {
  now = start + i * 60_000
}
const drop = async (repo: string, client = operator) => ok(await client.delete(`/registry/v2/repos/${repo}`))
const deleted = async (query: string, client = operator): Promise<Json> => ok(await client.get(`${path}?${query}`))
const recordsOf = (repo: string, client = operator) => client.get(`${path}/${repo}/tagHistory?tag=latest`)
const erase = (repoUid: string, client = operator) => client.post('/control/v1/ledgers:erase', { repoUid })
const historyAt = (name: string) => reader.get(`/v2/${name}/_svc/history/latest`)
const digestsAt = async (name: string): Promise<string[]> =>
  ok(await historyAt(name)).history.map(({ digest }: Json) => digest)
const member = async (scope: string, role: string) => pinfold.as((await pinfold.seed.member(scope, role)).uid)

let orgs = 0
/** Creates an organization with a repo `app`, whose tag `latest` points to the image `first`. */
async function scene() {
  const name = `org${orgs++}`
  const org = (await pinfold.seed.group('', { name })).uid as string
  const repo = (await pinfold.seed.repo(org, { name: 'app' })).uid as string
  at(0)
  await plantTag(pinfold, repo, 'latest', 'first')
  return { name, org, repo, image: `${name}/app` }
}

test('deleting a repository adds the end of each tag to the history, with actor and time, and keeps all rows', async () => {
  const { org, repo, image } = await scene()
  const owner = await pinfold.seed.member(org, roleUids.owner)
  at(1)
  await plantTag(pinfold, repo, 'latest', 'second')
  await plantTag(pinfold, repo, '1.0-r0', 'second')
  const rows = await ledgerOf(pinfold, repo)
  at(5)
  const events = await eventsOf(pinfold, () => pinfold.as(owner.uid).then((client) => drop(repo, client)))
  assert.deepEqual(
    events.map(({ type, subject }) => [type, subject]),
    [['dev.pinfold.api.platform.registry.repo.deleted.v1', repo]],
  )
  const digest = digestOf('second')
  const end = { time: minute(5), event: 3, digest, previous: digest, actor: owner.uid, source: 2 }
  const kept = await ledgerOf(pinfold, repo)
  assert.deepEqual(
    kept.filter(({ event }) => event === 3),
    ['1.0-r0', 'latest'].map((tag) => ({ tag, ...end, type: manifestType, size: 'second'.length })),
  )
  assert.deepEqual(
    kept.filter(({ event }) => event !== 3),
    rows,
  )
  assert.equal((await historyAt(image)).body.errors[0].code, 'NAME_UNKNOWN')
  await checkLists(pinfold)
})

test('a repository that is recreated in the same group continues its tag history', async () => {
  const { org, repo, image } = await scene()
  at(9)
  await drop(repo)
  at(3)
  const again = (await pinfold.seed.repo(org, { name: 'app' })).uid
  assert.deepEqual(await digestsAt(image), [digestOf('first')])
  await plantTag(pinfold, again, 'latest', 'second')
  const rows = await ledgerOf(pinfold, again)
  assert.deepEqual(
    rows.map(({ time, event, previous }) => [time, event, previous]),
    [
      [minute(0), 1, ''],
      [minute(9), 3, digestOf('first')],
      [minute(9).replace('000Z', '001Z'), 1, ''],
    ],
  )
  assert.deepEqual(await digestsAt(image), [digestOf('first'), digestOf('second')])
  assert.deepEqual(await ledgerOf(pinfold, repo), rows)
  const byApi = ok(await operator.get(`/registry/v2/repos/${again}/tagHistory?tag=latest`)).records
  assert.deepEqual(byApi, ok(await recordsOf(repo)).records)
  assert.equal(byApi.length, 3)
})

test('a new repository at the path of a deleted one has an empty history, in a new organization or after a rename', async () => {
  const { name, org, repo, image } = await scene()
  await drop(repo)
  ok(await operator.delete(`/iam/v2/groups/${org}`))
  const heir = (await pinfold.seed.group('', { name })).uid
  const made = (await pinfold.seed.repo(heir, { name: 'app' })).uid
  assert.equal((await historyAt(image)).body.errors[0].code, 'MANIFEST_UNKNOWN')
  assert.deepEqual(await ledgerOf(pinfold, made), [])

  const [team, other] = [await pinfold.seed.group(heir, { name: 'team' }), await pinfold.seed.group(heir)]
  const first = (await pinfold.seed.repo(team.uid, { name: 'app' })).uid
  await plantTag(pinfold, first, 'latest', 'of the first')
  await drop(first)
  const second = (await pinfold.seed.repo(other.uid, { name: 'app' })).uid
  await plantTag(pinfold, second, 'latest', 'of the second')
  ok(await operator.patch(`/iam/v2/groups/${team.uid}`, { name: 'former' }))
  ok(await operator.patch(`/iam/v2/groups/${other.uid}`, { name: 'team' }))
  assert.deepEqual(await digestsAt(`${name}/team/app`), [digestOf('of the second')])
  assert.deepEqual((await deleted(`path=${name}/team/app`)).deletedRepos[0].uid, first)
  // The renamed group still has its own repositories.
  const again = (await pinfold.seed.repo(team.uid, { name: 'app' })).uid
  assert.equal((await ledgerOf(pinfold, again)).length, 2)
})

test('never reuses the number of a deleted repository', async () => {
  const org = (await pinfold.seed.group()).uid
  const numberOf = async () => {
    const { uid } = await pinfold.seed.repo(org)
    const { id } = (await findRepoRow(pinfold.app.db, { uid }))!
    await drop(uid)
    return id
  }
  const numbers = [await numberOf(), await numberOf(), await numberOf()]
  assert.ok(numbers[0]! < numbers[1]! && numbers[1]! < numbers[2]!, String(numbers))
  const named = await pinfold.seed.repo(org, { name: 'same' })
  const { id } = (await findRepoRow(pinfold.app.db, { uid: named.uid }))!
  await drop(named.uid)
  const again = await pinfold.seed.repo(org, { name: 'same' })
  const row = (await findRepoRow(pinfold.app.db, { uid: again.uid }))!
  assert.ok(row.id > id)
  assert.equal(row.ledger, id)
})

test('members with permission to read the audit log find deleted repositories of the group by their old path', async () => {
  const { name, org, image } = await scene()
  const team = (await pinfold.seed.group(org, { name: 'team' })).uid
  const [owner, viewer] = [await member(org, roleUids.owner), await member(org, roleUids.viewer)]
  const stranger = await member((await pinfold.seed.group()).uid, roleUids.owner)
  const inTeam = (await pinfold.seed.repo(team, { name: 'app' })).uid
  await plantTag(pinfold, inTeam, 'latest', 'first')
  at(7)
  await drop(inTeam)
  // The group of the repo is deleted too.
  ok(await operator.delete(`/iam/v2/groups/${team}`))

  const found = await deleted(`path=${name}/team/app`, owner)
  const times = { createTime: found.deletedRepos[0].createTime, deleteTime: minute(7) }
  const expected = { uid: inTeam, group: team, path: `${name}/team/app`, actor: operatorUid, ...times }
  assert.deepEqual([found.deletedRepos, found.totalCount], [[expected], '1'])
  assert.deepEqual((await deleted(`uidp.descendants_of=${org}`, owner)).deletedRepos, [expected])
  assert.deepEqual((await deleted(`path=${image}`, owner)).deletedRepos, [])
  const { records } = ok(await recordsOf(inTeam, owner))
  assert.deepEqual(
    records.map(({ event, digest, time }: Json) => [event, digest, time]),
    [
      ['EVENT_DELETED', digestOf('first'), minute(7)],
      ['EVENT_CREATED', digestOf('first'), minute(0)],
    ],
  )
  for (const client of [viewer, stranger]) {
    assertDenied(await recordsOf(inTeam, client))
    assertDenied(await client.get(`${path}?uidp.descendants_of=${org}`))
    assert.ok((await deleted(`path=${name}/team/app`, client)).deletedRepos.length === 0)
  }
  const missing = `${org}/${'0'.repeat(16)}`
  assertNotFound(await recordsOf(missing, owner), deletedType, missing)
  assert.deepEqual(
    ok(await owner.get(`${path}/${inTeam}/tagHistory`)).records,
    (await recordsOf(inTeam, owner)).body.records,
  )
})

test('lists deleted repositories in pages, the latest deletion first', async () => {
  const org = (await pinfold.seed.group()).uid
  const uids: string[] = []
  for (let i = 0; i < 5; i++) {
    const { uid } = await pinfold.seed.repo(org, { name: i % 2 ? 'odd' : 'even' })
    at(20 + i)
    await drop(uid)
    uids.unshift(uid)
  }
  const pages: string[] = []
  for (let token = ''; ; ) {
    const page = await deleted(`uidp.children_of=${org}&page_size=2&page_token=${token}`)
    assert.equal(page.totalCount, '5')
    pages.push(...page.deletedRepos.map(({ uid }: Json) => uid))
    token = page.nextPageToken
    if (!token) break
  }
  assert.deepEqual(pages, uids)
  const ordered = await deleted(`uidp.children_of=${org}&order_by=delete_time`)
  assert.deepEqual(
    ordered.deletedRepos.map(({ uid }: Json) => uid),
    [...uids].reverse(),
  )
  assertInvalid(await operator.get(`${path}?order_by=path`), 'order_by')
})

test('erases a history of any size with temporary files instead of memory', async () => {
  const { repo } = await scene()
  await drop(repo)
  const txs = mock.method(pinfold.app.db, 'tx')
  ok(await erase(repo))
  assert.ok(txs.mock.calls.some(({ arguments: [, options] }) => options?.aside === 'disk'))
  txs.mock.restore()
})

test('only the operator can erase a tag history; the erasure blocks later writes and is in the audit log', async () => {
  const { org, repo, image } = await scene()
  const owner = await member(org, roleUids.owner)
  assertNotFound(await erase(repo), deletedType, repo)
  await drop(repo)
  const again = (await pinfold.seed.repo(org, { name: 'app' })).uid
  await plantTag(pinfold, again, 'latest', 'second')
  assertBlocked(await erase(repo), again, 'LEDGER_IN_USE')
  await drop(again)
  assertDenied(await erase(repo, owner))
  assert.equal((await ledgerOf(pinfold, repo)).length, 4)

  const body = { repoUid: repo, paths: [image], records: '4' }
  const events = await eventsOf(pinfold, async () => assert.deepEqual(ok(await erase(repo)), body))
  assert.deepEqual(
    events.map(({ type, subject, group, audience }) => [type, subject, group, audience]),
    [[erased, repo, org, 'CUSTOMER']],
  )
  const [entry] = ok(await owner.get(`/events/v2/audit?type=${erased}`)).auditEntries
  assert.deepEqual([entry.group, entry.subject, entry.actor], [org, repo, operatorUid])
  assert.deepEqual(JSON.parse(entry.body), { repo_uid: repo, paths: [image], records: '4' })

  for (const gone of [repo, again]) {
    assert.deepEqual(await ledgerOf(pinfold, gone), [])
    assertNotFound(await recordsOf(gone), deletedType, gone)
  }
  assert.deepEqual((await deleted(`path=${image}`)).deletedRepos, [])
  const fresh = (await pinfold.seed.repo(org, { name: 'app' })).uid
  assert.deepEqual(await ledgerOf(pinfold, fresh), [])
  await checkLists(pinfold)
})
