import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ok } from '../support/expect.ts'
import { type Answer, type Client, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { plantTag } from '../support/tags.ts'

let pinfold: Pinfold
let org: string
let reader: Client

before(async () => {
  pinfold = await startPinfold()
  org = (await pinfold.seed.group('', { name: 'acme' })).uid
  const audience = new URL(pinfold.url).host
  reader = await pinfold.as((await pinfold.seed.member(org, roleUids.pull)).uid, { audience })
})
after(() => pinfold[Symbol.asyncDispose]())

const names = ['latest', 'Zeta', 'alpha', 'v1', 'v10', 'v2', '1.0', '1.0-r0', '1.0-20260101', 'sha256-0.sig', '_x']
const inOrder = [...names].sort()

test('lists each tag in byte order, in pages with a link to the next', async () => {
  const { uid } = await pinfold.seed.repo(org, { name: 'app' })
  for (const name of names) await plantTag(pinfold, uid, name)
  const path = '/v2/acme/app/tags/list'
  const all = await reader.get(path)
  assert.deepEqual(ok(all), { name: 'acme/app', tags: inOrder })
  assert.equal(all.headers.get('link'), null)
  assert.equal(all.headers.get('content-type'), 'application/json')

  const pages: string[][] = []
  let next: string | undefined = `${path}?n=4`
  while (next !== undefined) {
    const answer: Answer = await reader.get(next)
    pages.push(ok(answer).tags)
    next = /^<([^>]*)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1]
  }
  assert.deepEqual(pages, [inOrder.slice(0, 4), inOrder.slice(4, 8), inOrder.slice(8)])
  assert.equal((await reader.get(`${path}?n=11`)).headers.get('link'), null)

  const tagsAt = async (query: string) => ok(await reader.get(`${path}?${query}`)).tags
  assert.deepEqual(await tagsAt('last=alpha'), inOrder.slice(inOrder.indexOf('alpha') + 1))
  assert.deepEqual(await tagsAt('last=b&n=1'), ['latest'], 'where there is no such tag')
  assert.deepEqual(await tagsAt('last=zzz'), [])
  const none = await reader.get(`${path}?n=0`)
  assert.deepEqual([ok(none).tags, none.headers.get('link')], [[], null])
  for (const n of ['-1', 'x', '1.5', '']) assert.equal((await reader.get(`${path}?n=${n}`)).status, 400, n)
  const head = await reader.call('HEAD', path)
  assert.deepEqual([head.status, head.text, head.headers.get('content-length')], [200, '', String(all.text.length)])
})

test('an image without tags has an empty list, and a missing image returns NAME_UNKNOWN', async () => {
  await pinfold.seed.repo(org, { name: 'empty' })
  assert.deepEqual(ok(await reader.get('/v2/acme/empty/tags/list')), { name: 'acme/empty', tags: [] })
  const missing = await reader.get('/v2/acme/missing/tags/list')
  assert.deepEqual([missing.status, missing.body.errors[0].code], [404, 'NAME_UNKNOWN'])
})

test('anonymous clients see the free tags of a public image, and callers with permission see all tags', async () => {
  const publicOrg = (await pinfold.seed.group('', { name: 'public' })).uid
  const { uid } = await pinfold.seed.repo(publicOrg, { name: 'base' })
  for (const name of ['1.0', 'latest', 'latest-dev', 'z']) await plantTag(pinfold, uid, name)
  const { token } = ok(await pinfold.anonymous.get('/token?scope=repository:public/base:pull'))
  const anybody = pinfold.withToken(token)
  const path = '/v2/public/base/tags/list'
  assert.deepEqual(ok(await anybody.get(path)).tags, ['latest', 'latest-dev'])
  const first = await anybody.get(`${path}?n=1`)
  assert.deepEqual(ok(first).tags, ['latest'])
  assert.match(first.headers.get('link')!, /n=1&last=latest>/)
  assert.deepEqual(ok(await anybody.get(`${path}?n=1&last=latest`)).tags, ['latest-dev'])
  assert.deepEqual(ok(await reader.get(path)).tags, ['latest', 'latest-dev'], 'a member of another organization')
  const member = await pinfold.seed.member(publicOrg, roleUids.pull)
  const insider = await pinfold.as(member.uid, { audience: new URL(pinfold.url).host })
  assert.deepEqual(ok(await insider.get(path)).tags, ['1.0', 'latest', 'latest-dev', 'z'])
})
