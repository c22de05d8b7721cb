// Each resource has one entry in the resource table, and derived values match the database tables and the caches.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { compile, type Db, ident, type Reader, type Sql, sql } from '#db/sql.ts'
import { findPushToken } from '#domains/iam/push-tokens/push-tokens.store.ts'
import { createGrantCache } from '#domains/iam/roles/grants.ts'
import { findSession } from '#domains/iam/sessions/sessions.store.ts'
import { gateExceptionTable, gateTable } from '#domains/policy/gates/gates.store.ts'
import { pullRuleExceptionTable, pullRuleTable } from '#domains/policy/pull-rules/pull-rules.store.ts'
import {
  holdTable,
  quarantineTable,
  retentionRuleTable,
  tagRuleTable,
} from '#domains/policy/retention/retention.store.ts'
import type { Question } from '#domains/policy/views/resolve.service.ts'
import { createViewCache } from '#domains/policy/views/view-cache.ts'
import { findManifest } from '#domains/registry/manifests/manifests.store.ts'
import { createPathCache } from '#domains/registry/repos/paths.service.ts'
import { digestOf } from '#domains/registry/tags/tags.store.ts'
import type { CacheName } from '#lib/resource.ts'
import { clearOnCommit, resources } from '../../src/resources.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Tables with a uid that belong to no resource. */
const notResources = {
  list_keys: 'the keys of lists, which hold the uids of what is listed',
  advisory_texts: 'an index of advisories',
  advisory_postings: 'an index of advisories',
  uploads: 'pushes that have begun; their uid is in no hierarchy',
}

/** Names in errors for things that are not separate resources. */
const partsOfOthers = [
  'registry.pinfold.dev/Deployment',
  'registry.pinfold.dev/Package',
  'registry.pinfold.dev/VulnReport',
  'vulnerabilities.pinfold.dev/AdvisoryEvent',
]

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

async function tables(column?: string): Promise<string[]> {
  const { db } = pinfold.app
  const rows = await (db.engine === 'sqlite'
    ? db.all<{ name: string; column: string }>(sql`
        SELECT m.name AS name, c.name AS "column" FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'`)
    : db.all<{ name: string; column: string }>(sql`
        SELECT table_name AS name, column_name AS "column" FROM information_schema.columns
         WHERE table_schema = current_schema()`))
  return [...new Set(rows.filter((row) => !column || row.column === column).map(({ name }) => name))].sort()
}

test('each table with uids belongs to one resource, or has a reason not to', async () => {
  const declared = resources.map(({ table }) => table)
  assert.equal(new Set(declared).size, declared.length, 'two resources share a table')
  const all = await tables()
  assert.deepEqual(
    declared.filter((table) => !all.includes(table)),
    [],
  )
  const named = [...declared, ...Object.keys(notResources)]
  assert.deepEqual(
    (await tables('uid')).filter((table) => !named.includes(table)),
    [],
  )
  const needed = await tables('uid')
  assert.deepEqual(
    Object.keys(notResources).filter((table) => !needed.includes(table)),
    [],
  )
})

test('each kind in a list of a store belongs to one resource', () => {
  const declared = resources.flatMap(({ kinds }) => kinds)
  assert.equal(new Set(declared).size, declared.length, 'two resources share a kind')
  const stores = globSync('src/domains/**/*.store.ts', { cwd: root })
  const listed = stores.flatMap((file) => {
    const text = readFileSync(`${root}/${file}`, 'utf8')
    const named = text.matchAll(/\bkind(?::| =) '([a-z_]+)'|nodeTable\([^)]*?\btable: '([a-z_]+)'/g)
    return [...named].map(([, kind, table]) => kind ?? table!)
  })
  assert.ok(listed.length > 10, 'the pattern finds the kinds no longer')
  assert.deepEqual(
    listed.filter((kind) => !declared.includes(kind)),
    [],
  )
})

test('each resource name in errors belongs to one table', () => {
  const models = globSync('src/domains/**/*.model.ts', { cwd: root })
  const names = models.flatMap((file) => {
    return [...readFileSync(`${root}/${file}`, 'utf8').matchAll(/Type = '([a-z]+\.pinfold\.dev\/\w+)'/g)].map(
      ([, name]) => name!,
    )
  })
  assert.deepEqual([...resources.map(({ type }) => type), ...partsOfOthers].sort(), names.sort())
})

test('lists each domain, with the data that it keeps', () => {
  const domains = globSync('src/domains/*/domain.ts', { cwd: root }).map((file) => file.split('/')[2]!)
  const listed = readFileSync(`${root}/src/domains/domains.ts`, 'utf8')
  assert.deepEqual(
    domains.filter((domain) => !listed.includes(`#domains/${domain}/domain.ts`)),
    [],
  )
  for (const file of globSync('src/domains/*/resources.ts', { cwd: root })) {
    const domain = readFileSync(`${root}/${file.replace('resources.ts', 'domain.ts')}`, 'utf8')
    assert.match(domain, /\n {2}resources,\n/, file)
  }
})

test('no service clears a cache itself', () => {
  const files = globSync('src/**/*.ts', { cwd: root }).filter((file) => !file.endsWith('.test.ts'))
  const clearing = files.filter((file) =>
    /\b(?:grants|paths|tags|views|manifests)\.clear\(/.test(readFileSync(`${root}/${file}`, 'utf8')),
  )
  assert.deepEqual(clearing, [])
})

const weekOld: Question = {
  until: '2026-06-01T00:00:00.000Z',
  isNow: true,
  age: { ms: 7 * 86_400_000, hold: 0, countFrom: 'tag' },
}

/** Tables that a cache reads, according to its statements. */
async function readBy(fill: (reader: Reader) => Promise<unknown>): Promise<string[]> {
  const texts: string[] = []
  const answer = (query: Sql) => {
    const text = compile(query, '?')
    texts.push(text)
    // Each query returns a row, so that the function continues to its next query.
    return { uid: 'a'.repeat(40), name: 'a', id: 1, scope: '/', capabilities: '[]' }
  }
  const reader = {
    all: async (query: Sql) => [answer(query)],
    get: async (query: Sql) => answer(query),
  } as unknown as Reader
  await fill(reader)
  return [
    ...new Set(texts.flatMap((text) => [...text.matchAll(/\b(?:FROM|JOIN) (\w+)/g)].map(([, name]) => name!))),
  ].sort()
}

test('a cache depends on each table that it reads', async () => {
  const fills: Record<CacheName, (reader: Reader) => Promise<unknown>> = {
    grants: (reader) => createGrantCache(reader, () => 0).of('a'),
    paths: (reader) => createPathCache(reader, () => 0).find('a/b/c'),
    tags: (reader) => digestOf(reader, 1, 'a'),
    views: (reader) => createViewCache(reader as Db, () => 0).of({ id: 1, uid: 'a', ledger: 1 }, 'a', weekOld),
    manifests: (reader) => findManifest(reader, 1, 'sha256:0'),
    sessions: (reader) => findSession(reader, 'a').catch(() => undefined),
    pushTokens: (reader) => findPushToken(reader, 'a').catch(() => undefined),
    pullRules: async (reader) => {
      await pullRuleTable.list.below(reader, 'a', {}, 1).catch(() => undefined)
      await pullRuleExceptionTable.list.below(reader, 'a', { now: undefined }, 1)
    },
    gates: async (reader) => {
      await gateTable.list.below(reader, 'a', {}, 1).catch(() => undefined)
      await gateExceptionTable.list.below(reader, 'a', { now: undefined }, 1)
    },
    contentRules: async (reader) => {
      for (const { list } of [retentionRuleTable, tagRuleTable]) {
        await list.below(reader, 'a', {}, 1).catch(() => undefined)
      }
      for (const { list } of [holdTable, quarantineTable]) {
        await list.below(reader, 'a', { now: '' }, 1).catch(() => undefined)
      }
    },
  }
  for (const [name, fill] of Object.entries(fills)) {
    const cleared = resources.filter(({ clears }) => clears?.[name as CacheName]).map(({ table }) => table)
    const read = await readBy(fill)
    assert.ok(read.length > 0, name)
    assert.deepEqual(
      read.filter((table) => !cleared.includes(table)),
      [],
      name,
    )
  }
})

test('only these table changes clear a cache', async () => {
  const expected = [
    'delete external_group_role_mappings: sessions',
    'delete follows: paths',
    'delete gate_exceptions: gates',
    'delete gates: gates',
    'delete groups: grants paths pushTokens',
    'delete holds: contentRules',
    'delete identities: grants pushTokens',
    'delete manifests: manifests views',
    'delete pull_rule_exceptions: pullRules',
    'delete pull_rules: pullRules',
    'delete push_tokens: pushTokens',
    'delete quarantined: contentRules views',
    'delete repos: manifests paths tags views',
    'delete retention_rules: contentRules',
    'delete role_bindings: grants',
    'delete roles: grants sessions',
    'delete scim_groups: sessions',
    'delete sessions: sessions',
    'delete tag_history: views',
    'delete tag_rules: contentRules',
    'delete tags: tags',
    'insert external_group_role_mappings: sessions',
    'insert follows: paths',
    'insert gate_exceptions: gates',
    'insert gates: gates',
    'insert holds: contentRules',
    'insert manifests: views',
    'insert pull_rule_exceptions: pullRules',
    'insert pull_rules: pullRules',
    'insert quarantined: contentRules views',
    'insert repo_removals: manifests paths tags views',
    'insert retention_rules: contentRules',
    'insert role_bindings: grants',
    'insert scim_groups: sessions',
    'insert tag_history: views',
    'insert tag_rules: contentRules',
    'insert tags: tags',
    'update follows: paths',
    'update gate_exceptions: gates',
    'update gates: gates',
    'update groups: paths',
    'update holds: contentRules',
    'update identity_providers: sessions',
    'update pull_rule_exceptions: pullRules',
    'update pull_rules: pullRules',
    'update quarantined: contentRules views',
    'update retention_rules: contentRules',
    'update role_bindings: grants',
    'update roles: grants sessions',
    'update scim_groups: sessions',
    'update tag_rules: contentRules',
    'update tags: tags',
  ]
  const { db } = pinfold.app
  let cleared: string[] = []
  const cache = (name: string) => ({ clear: () => void cleared.push(name) })
  clearOnCommit(db, {
    grants: cache('grants'),
    manifests: cache('manifests'),
    tags: cache('tags'),
    views: cache('views'),
    paths: cache('paths'),
    sessions: cache('sessions'),
    pushTokens: cache('pushTokens'),
    pullRules: cache('pullRules'),
    gates: cache('gates'),
    contentRules: cache('contentRules'),
  })
  const found: string[] = []
  for (const table of await tables()) {
    const statements = {
      insert: sql`INSERT INTO ${ident(table)} SELECT * FROM ${ident(table)} WHERE 1 = 0`,
      update: sql`UPDATE ${ident(table)} SET ${ident(await columnOf(table))} = NULL WHERE 1 = 0`,
      delete: sql`DELETE FROM ${ident(table)} WHERE 1 = 0`,
    }
    for (const [verb, statement] of Object.entries(statements)) {
      cleared = []
      await db.tx((tx) => tx.run(statement))
      if (cleared.length > 0) found.push(`${verb} ${table}: ${cleared.sort().join(' ')}`)
    }
  }
  assert.deepEqual(found.sort(), expected)
})

async function columnOf(table: string): Promise<string> {
  const { db } = pinfold.app
  const row = await (db.engine === 'sqlite'
    ? db.get<{ name: string }>(sql`SELECT name FROM pragma_table_info(${table}) LIMIT 1`)
    : db.get<{ name: string }>(sql`
        SELECT column_name AS name FROM information_schema.columns
         WHERE table_schema = current_schema() AND table_name = ${table} LIMIT 1`))
  return row!.name
}
