import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { decodeJwt } from 'jose'
import { join, sql } from '#db/sql.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { chunks } from '#lib/chunks.ts'
import { operatorUid } from '#lib/uid.ts'
import { ok } from '../support/expect.ts'
import { type Answer, type Client, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { registryClient } from '../support/registry.ts'

let pinfold: Pinfold
let org: string
let team: string
const repos = new Map<string, string>()
let operator: Client
const path = '/v2/_catalog'
const host = () => new URL(pinfold.url).host

/** Byte order: a slash sorts after a dash and a dot. */
const inOrder = [
  'acme/a-b',
  'acme/a.b/x',
  'acme/a/x',
  'acme/a/y/deep',
  'acme/a0',
  'acme/app',
  'acme/team/one',
  'acme/team/two',
  'acme/z/last',
  'zoo/only',
]

before(async () => {
  pinfold = await startPinfold()
  operator = await pinfold.as(operatorUid, { audience: host() })
  const groups = new Map<string, string>()
  const groupOf = async (parts: readonly string[]): Promise<string> => {
    if (parts.length === 0) return ''
    const at = parts.join('/')
    const uid =
      groups.get(at) ?? (await pinfold.seed.group(await groupOf(parts.slice(0, -1)), { name: parts.at(-1)! })).uid
    groups.set(at, uid)
    return uid
  }
  for (const one of inOrder.toReversed()) {
    const parts = one.split('/')
    const { uid } = await pinfold.seed.repo(await groupOf(parts.slice(0, -1)), { name: parts.at(-1)! })
    repos.set(one, uid)
  }
  org = groups.get('acme')!
  team = groups.get('acme/team')!
  for (const name of ['empty', 'a-empty']) await pinfold.seed.group(org, { name })
})
after(() => pinfold[Symbol.asyncDispose]())

const namesOf = (answer: Answer): string[] => ok(answer).repositories
const nextOf = ({ headers }: Answer) => /^<([^>]*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]

/** Follows Link headers until a response has none, like crane. */
async function allOf(client: Client, first: string): Promise<string[][]> {
  const pages: string[][] = []
  for (let next: string | undefined = first; next !== undefined; ) {
    const answer: Answer = await client.get(next)
    pages.push(namesOf(answer))
    next = nextOf(answer)
  }
  return pages
}

test('lists each repository by path, in byte order, in pages with a link to the next', async () => {
  const all = await operator.get(path)
  assert.deepEqual(ok(all), { repositories: inOrder })
  assert.equal(all.headers.get('link'), null)
  assert.equal(all.headers.get('content-type'), 'application/json')
  for (const n of [1, 2, 3, 7, 10, 11]) {
    const pages = await allOf(operator, `${path}?n=${n}`)
    assert.deepEqual(pages.flat(), inOrder, `by ${n}`)
    assert.ok(pages.every((page) => page.length <= n))
  }
  const none = await operator.get(`${path}?n=0`)
  assert.deepEqual([namesOf(none), nextOf(none)], [[], undefined])
  const head = await operator.call('HEAD', path)
  assert.deepEqual([head.status, head.text, head.headers.get('content-length')], [200, '', String(all.text.length)])
})

test('the list continues after any text, also if no repository has that name', async () => {
  const lasts = [
    ...inOrder,
    'acme',
    'acme/',
    'acme/a',
    'acme/a/',
    'acme/a/~',
    'acme/b',
    'acme/teal',
    'm',
    'zoo/z',
    'é',
    'Z',
    '/',
  ]
  for (const last of lasts) {
    const names = namesOf(await operator.get(`${path}?last=${encodeURIComponent(last)}`))
    assert.deepEqual(
      names,
      inOrder.filter((name) => name > last),
      last,
    )
  }
  assert.deepEqual(namesOf(await operator.get(`${path}?last=acme/te%00x`)), inOrder.slice(6))
  for (const n of ['-1', 'x', '1.5', '']) assert.equal((await operator.get(`${path}?n=${n}`)).status, 400, n)
  const post = await operator.call('POST', path)
  assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD'])
})

test('lists only repositories that the caller can list, and none for callers without a role', async () => {
  const as = async (group: string, role?: string) => {
    const { uid } = role ? await pinfold.seed.member(group, role) : await pinfold.seed.identity(group)
    return pinfold.as(uid, { audience: host() })
  }
  const acme = inOrder.filter((name) => name.startsWith('acme/'))
  assert.deepEqual(namesOf(await (await as(org, roleUids.viewer)).get(path)), acme)
  assert.deepEqual(namesOf(await (await as(team, roleUids.viewer)).get(path)), ['acme/team/one', 'acme/team/two'])
  assert.deepEqual(namesOf(await (await as(team, roleUids.viewer)).get(`${path}?last=acme/team/one`)), [
    'acme/team/two',
  ])
  const stranger = await (await as(org)).get(path)
  assert.deepEqual([ok(stranger), nextOf(stranger)], [{ repositories: [] }, undefined])

  // Identity with access to several separate scopes, one of which is a repository.
  const both = await pinfold.seed.member(org, roleUids.viewer)
  const cap = (...scopes: string[]) =>
    Object.fromEntries(scopes.map((scope) => [scope, [capabilityNumber('repo.list')]]))
  const narrowed = await pinfold.as(both.uid, {
    audience: host(),
    cap: cap(repos.get('acme/app')!, team, repos.get('acme/a-b')!),
  })
  const few = ['acme/a-b', 'acme/app', 'acme/team/one', 'acme/team/two']
  assert.deepEqual(namesOf(await narrowed.get(path)), few)
  assert.deepEqual((await allOf(narrowed, `${path}?n=1`)).flat(), few)
  assert.deepEqual(namesOf(await (await pinfold.as(both.uid, { audience: host(), cap: {} })).get(path)), [])
})

test('challenges contain the scope for a token that can list', async () => {
  const asked = await pinfold.anonymous.get(path)
  assert.equal(asked.status, 401)
  const scope = 'scope="registry:catalog:*"'
  assert.ok(asked.headers.get('www-authenticate')!.endsWith(scope))
  assert.equal((await pinfold.anonymous.get('/token?scope=registry:catalog:*')).status, 401)

  const { uid } = await pinfold.seed.member(team, roleUids.viewer)
  const credential = await pinfold.tokenFor(uid, { audience: host() })
  const tokenFor = async (query: string) => ok(await pinfold.withToken(credential).get(`/token?${query}`)).token
  const token = await tokenFor('scope=registry:catalog:*&scope=repository:acme/team/one:pull')
  assert.deepEqual(decodeJwt<{ access: unknown }>(token).access, [
    { type: 'registry', name: 'catalog', actions: ['*'] },
    { type: 'repository', name: 'acme/team/one', actions: ['pull'] },
  ])
  assert.deepEqual(namesOf(await pinfold.withToken(token).get(path)), ['acme/team/one', 'acme/team/two'])
  const other = await pinfold.withToken(await tokenFor('scope=repository:acme/team/one:pull')).get(path)
  assert.equal(other.status, 401)
  assert.match(other.headers.get('www-authenticate')!, /scope="registry:catalog:\*",error="insufficient_scope"$/)
  const pull = await pinfold.withToken(await tokenFor('scope=registry:catalog:*')).get('/v2/acme/team/one/tags/list')
  assert.equal(pull.status, 401, 'nor does that for the list pull')
})

test('a subdomain lists the repositories of its folder, by their names in the folder', async () => {
  const client = registryClient(pinfold.url, await pinfold.tokenFor(operatorUid, { audience: host() }))
  const call = (query = '') => client.ok(200, 'GET', `_catalog${query}`, { headers: { host: `team.${host()}` } })
  assert.deepEqual((await call()).body.repositories, ['acme/one', 'acme/two'])
  const first = await call('?n=1')
  assert.deepEqual(first.body.repositories, ['acme/one'])
  assert.equal(first.headers.link, '</v2/_catalog?n=1&last=acme%2Fone>; rel="next"')
  assert.deepEqual((await call('?n=1&last=acme/one')).body.repositories, ['acme/two'])
})

test('folders without a repository do not fill a page, and are skipped over several requests', async () => {
  const wide = (await pinfold.seed.group('', { name: 'wide' })).uid
  await pinfold.seed.repo((await pinfold.seed.group(wide, { name: 'zz' })).uid, { name: 'x' })
  const tails = Array.from({ length: 10_500 }, (_, i) => i.toString(16).padStart(16, '0'))
  await pinfold.app.db.tx(async (tx) => {
    for (const some of chunks(tails, 500)) {
      const rows = some.map((tail) => sql`(${`${wide}/${tail}`}, ${wide}, ${tail}, ${`f${tail}`}, 1, '', '')`)
      await tx.run(sql`
        INSERT INTO groups (uid, parent_uid, tail, name, status, create_time, update_time) VALUES ${join(rows, ', ')}`)
    }
  })
  const pages = await allOf(operator, `${path}?last=v&n=5`)
  assert.deepEqual(pages, [[], ['wide/zz/x', 'zoo/only']])
})
