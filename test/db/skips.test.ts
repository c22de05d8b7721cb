// Pages that skip items contain the same items as the whole list, from both ends.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { repoList } from '#domains/registry/repos/repos.store.ts'
import { everyShape } from '#domains/registry/tags/tags.model.ts'
import { listTags, type TagBranch, type TagFilter } from '#domains/registry/tags/tags.store.ts'
import type { Page } from '#lib/lists/paging.ts'
import { startRegistry } from '../support/registry.ts'

const filterOf = (asked: number): TagFilter => ({ name: '', digest: '', updatedSince: '', asked })

type Read = (page: Page) => Promise<{ uid: string }[]>

async function checkSkips(read: Read, fields: Record<string, string>, count: number, what: string): Promise<void> {
  for (const [field, column] of Object.entries(fields)) {
    for (const desc of [false, true]) {
      const page: Page = { order: { field, column, desc }, after: undefined, size: 100, skip: 0, binding: '' }
      const all = (await read(page)).map(({ uid }) => uid)
      assert.equal(all.length, count, what)
      for (let skip = 0; skip <= count + 2; skip++) {
        const some = await read({ ...page, size: 3, skip })
        // One row more than the page has room for.
        const shown = some.map(({ uid }) => uid)
        assert.deepEqual(shown, all.slice(skip, skip + 4), `${what} by ${field}, desc ${desc}, skip ${skip}`)
      }
      const cursor = (await read({ ...page, size: 1 }))[0] as Record<string, unknown> & { uid: string }
      const behind = { ...page, size: 3, after: { value: String(cursor[field]), uid: cursor.uid } }
      for (const skip of [1, count - 3, count]) {
        const shown = (await read({ ...behind, skip })).map(({ uid }) => uid)
        assert.deepEqual(shown, all.slice(1 + skip, 5 + skip), `${what} by ${field}, behind a cursor, skip ${skip}`)
      }
    }
  }
}

test('returns the items after any number of skipped ones, in each order, for all combinations of groups and name kinds', async () => {
  await using registry = await startRegistry()
  const { app, seed, pusher, org } = registry
  const other = await seed.group('', { name: 'other' })
  for (const [parent, count] of [
    [org.uid, 7],
    [other.uid, 5],
  ] as const) {
    for (let i = 0; i < count; i++) await seed.repo(parent, { name: `repo-${(i * 5) % 7}` })
  }
  const fields = { name: 'name', createTime: 'create_time', uid: 'uid' }
  const repos = (branches: { below: string }[]) => (page: Page) => {
    return repoList.list(app.db, branches, page, { name: undefined })
  }
  await checkSkips(repos([{ below: org.uid }]), fields, 7, 'one group')
  await checkSkips(repos([{ below: org.uid }, { below: other.uid }]), fields, 12, 'two groups')

  const image = await pusher.pushImage('acme/app', 'first')
  const { bytes: body } = await pusher.ok(200, 'GET', `acme/app/manifests/${image.digest}`)
  const plain = ['alpha', 'beta', 'delta', 'edge', 'gamma', 'main']
  for (const tag of ['1.0-r1', '1.0-r2', '1.1', 'daily-20261101', 'latest', '1.1-r0', ...plain]) {
    await pusher.ok(201, 'PUT', `acme/app/manifests/${tag}`, { body, headers: { 'content-type': image.mediaType } })
  }
  const tags = (asked: number, branches: TagBranch[]) => (page: Page) => {
    return listTags(app.db, branches, page, filterOf(asked))
  }
  const keys = { name: 'name', updateTime: 'update_time', digest: 'digest', uid: 'uid' }
  await checkSkips(tags(0, [{ below: org.uid }]), keys, 9, 'tags')
  await checkSkips(tags(everyShape, [{ below: org.uid }]), keys, 13, 'tags with names of every kind')

  // Tags that moved later than the second one.
  const since = {
    order: { field: 'updateTime', column: 'update_time', desc: false },
    after: undefined,
    size: 1,
    skip: 1,
  }
  const [second] = await listTags(app.db, [{ below: org.uid }], { ...since, binding: '' }, filterOf(everyShape))
  const later = { ...filterOf(everyShape), updatedSince: second!.updateTime }
  for (const branches of [[{ below: org.uid }], [{ below: org.uid }, { below: other.uid }]]) {
    const count = (await app.db.get<{ total: number }>(sql`
      SELECT count(*) AS total FROM tags WHERE update_time > ${later.updatedSince}`))!.total
    assert.ok(count > 6, 'more of one kind of names than a page has')
    await checkSkips((page) => listTags(app.db, branches, page, later), keys, count, 'tags that moved later')
  }
})
