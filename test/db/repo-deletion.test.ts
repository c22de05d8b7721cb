// No reference to a repository outlives it: in each table of the schema, a foreign key or a hook deletes the rows.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import { ident, join, list, sql, type Tx, type Value } from '#db/sql.ts'
import { removeRepos } from '#domains/registry/deletions/removals.job.ts'
import { mostAtOnce } from '#domains/registry/repos/removals.model.ts'
import { openRemovals } from '#domains/registry/repos/removals.store.ts'
import { indexNames } from '#domains/search/index-names.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { copyOfSqlite } from '../support/migrated.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'

/** Tables whose rows stay although a column refers to the repository. */
const stays: Readonly<Record<string, string>> = {
  'digest_usage.repo_id': 'counts pulls by day; a background job deletes old days',
  'digest_last_pulls.repo_id': 'the last pulls of callers; a background job deletes old ones',
  'planned_deletions.repo_uid': 'a part of a retention plan, which is deleted as a whole',
  'retention_plans.repo': 'how far a plan has come; plans expire',
  'vulnerability_changes.last_repo': 'how far a background job has come in a list of repositories',
  'resolved_later.last_repo': 'how far a background job has come in a list of repositories',
}

/** Records of decisions about a repository. They stay, and some get an end time. */
const records: Readonly<Record<string, 'ends' | 'stays'>> = {
  gate_exceptions: 'ends',
  pull_rule_exceptions: 'ends',
  holds: 'stays',
  quarantined: 'stays',
  retention_plans: 'stays',
  risk_acceptances: 'stays',
  vex_signers: 'stays',
}

type Column = { name: string; type: string; notnull: number; dflt_value: string | null; pk: number }
type Key = { id: number; from: string; to: string; table: string; on_delete: string }
type Table = { name: string; columns: Column[]; keys: Key[] }

let registry: TestRegistry
let tables: Table[]
const repos = new Map<string, Repo>()
before(async () => {
  registry = await startRegistry({ jobs: [] })
  // Repositories are first, because a push would read the inserted rows.
  for (const name of ['small', 'large', 'ruled']) repos.set(name, await pushRepo(name))
  tables = await readTables()
})
after(() => registry[Symbol.asyncDispose]())

/** The tables in SQLite. PostgreSQL has the same tables. */
async function readTables(): Promise<Table[]> {
  const folder = mkdtempSync(joinPath(tmpdir(), 'pinfold-test-'))
  const file = joinPath(folder, 'schema.db')
  await copyOfSqlite(file)
  const db = new DatabaseSync(file, { readOnly: true })
  const all = (text: string, ...values: string[]) => db.prepare(text).all(...values) as never[]
  const names: { name: string }[] = all(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'`,
  )
  const found = names.map(({ name }) => ({
    name,
    columns: all('SELECT * FROM pragma_table_info(?)', name),
    keys: all('SELECT * FROM pragma_foreign_key_list(?)', name),
  }))
  db.close()
  rmSync(folder, { recursive: true })
  return found
}

const tableOf = (name: string): Table => tables.find((table) => table.name === name)!

type Reference = { table: Table; column: string }

/** Columns that refer to a repository. Columns of the tag history refer to the ledger, which outlives the repository. */
function referring(pattern: RegExp): Reference[] {
  return tables.flatMap((table) =>
    table.columns
      .filter(({ name }) => pattern.test(name))
      .filter(({ name }) => !table.keys.some((key) => key.from === name && key.table === 'ledgers'))
      .map(({ name }) => ({ table, column: name })),
  )
}

type Row = Record<string, Value>
type Repo = { id: number; uid: string; digest: string; org: string }

let numbers = 900_000
const past = '2000-01-01T00:00:00.000Z'

/** Adds a row to a table, and the rows that it refers to. `known` contains values for the row. */
async function plant(tx: Tx, { name, columns, keys }: Table, repo: Repo, known: Row): Promise<Row> {
  const row: Row = { ...known }
  for (const { name: column, type, notnull, dflt_value, pk } of columns) {
    if (column in row || (notnull === 0 && pk === 0) || dflt_value !== null) continue
    const key = keys.find((one) => one.from === column)
    if (column === 'digest') row[column] = repo.digest
    else if (key?.table === 'groups') row[column] = repo.org
    else if (key && key.table !== 'repos') {
      const parent = tableOf(key.table)
      const about = parent.columns.some((one) => one.name === 'repo_uid') ? { repo_uid: repo.uid } : {}
      row[column] = (await plant(tx, parent, repo, about))[key.to]!
    } else if (column === 'uid') row[column] = `${repo.uid}/${(numbers++).toString(16).padStart(16, '0')}`
    else if (type === 'INTEGER') row[column] = pk > 0 ? numbers++ : 1
    else if (/_time$/.test(column)) row[column] = past
    else row[column] = type === 'TEXT' ? `x${numbers++}` : Buffer.alloc(1)
  }
  const names = join(Object.keys(row).map(ident), ', ')
  await tx.run(sql`INSERT INTO ${ident(name)} (${names}) VALUES (${list(Object.values(row))})`)
  return row
}

async function pushRepo(name: string): Promise<Repo> {
  const { digest } = await registry.pusher.pushImage(`acme/${name}`, 'v1')
  const { app, org } = registry
  const row = await app.db.get<{ id: number; uid: string }>(sql`SELECT id, uid FROM repos WHERE name = ${name}`)
  return { ...row!, digest, org: org.uid }
}

function valueIn(repo: Repo, { table, column }: Reference): Value {
  const isNumber = table.columns.some(({ name, type }) => name === column && type === 'INTEGER')
  return isNumber ? repo.id : repo.uid
}

async function countOf(reference: Reference, repo: Repo): Promise<number> {
  const { table, column } = reference
  const row = await registry.app.db.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM ${ident(table.name)} WHERE ${ident(column)} = ${valueIn(repo, reference)}`)
  return Number(row!.total)
}

/** Fills each table that refers to the repository, deletes the repository, and returns the tables with remaining rows. */
async function leftAfter(repo: Repo, remove: () => Promise<void>): Promise<string[]> {
  const all = referring(/^(?:repo|repo_id|repo_uid|last_repo)$/)
  assert.ok(all.length > 20, 'the columns that name repositories are not found any more')
  for (const one of all) {
    if ((await countOf(one, repo)) > 0) continue
    await registry.app.db.tx((tx) => plant(tx, one.table, repo, { [one.column]: valueIn(repo, one) }))
  }
  for (const one of all) assert.notEqual(await countOf(one, repo), 0, `${one.table.name} has no row`)
  await remove()
  // The search index removes its rows later.
  await runJob(registry.app, indexNames)
  const left: string[] = []
  for (const one of all) if ((await countOf(one, repo)) > 0) left.push(`${one.table.name}.${one.column}`)
  return left.sort()
}

test('no table keeps rows of a deleted small repository', async () => {
  const repo = repos.get('small')!
  const left = await leftAfter(repo, async () => {
    ok(await registry.operator.delete(`/registry/v2/repos/${repo.uid}`))
    assert.deepEqual(await openRemovals(registry.app.db), [])
  })
  assert.deepEqual(left, Object.keys(stays).sort())
})

test('no table keeps rows of a deleted large repository', async () => {
  const repo = repos.get('large')!
  const { app, operator } = registry
  const left = await leftAfter(repo, async () => {
    const [job] = await app.db.all<Row>(sql`SELECT * FROM scan_jobs WHERE repo_id = ${repo.id}`)
    await app.db.tx(async (tx) => {
      for (let i = 0; i <= mostAtOnce; i++) await tx.run(copyOf(job!, `sha256:${i}`))
    })
    ok(await operator.delete(`/registry/v2/repos/${repo.uid}`))
    assert.equal((await openRemovals(app.db)).length, 1, 'it is removed in batches')
    await runJob(app, removeRepos)
  })
  assert.deepEqual(left, Object.keys(stays).sort())
})

function copyOf({ id, ...row }: Row, digest: string) {
  const names = join(Object.keys(row).map(ident), ', ')
  return sql`INSERT INTO scan_jobs (${names}) VALUES (${list(Object.values({ ...row, digest }))})`
}

test('deletes the rules of a deleted repository, and keeps records of decisions with their end time', async () => {
  const repo = repos.get('ruled')!
  const { app } = registry
  const all = referring(/^scope_uid$/)
  for (const { table } of all) {
    const rule = table.columns.some(({ name }) => name === 'rule') && table.name === 'former_rules'
    const known = rule ? { scope_uid: repo.uid, rule: `${repo.uid}/0` } : { scope_uid: repo.uid }
    await app.db.tx((tx) => plant(tx, table, repo, known))
  }
  const [now, removal] = ['2100-01-01T00:00:00.000Z', { ...repo, ledger: repo.id, actor: 'someone', deleteTime: '' }]
  await app.db.tx(async (tx) => {
    for (const repoHidden of app.hooks.repoHidden) await repoHidden(tx, removal, now)
  })
  const found: Record<string, string> = {}
  for (const { table } of all) {
    const [row] = await app.db.all<Row>(sql`SELECT * FROM ${ident(table.name)} WHERE scope_uid = ${repo.uid}`)
    if (row) found[table.name] = Object.values(row).includes(now) ? 'ends' : 'stays'
  }
  assert.deepEqual(found, records)
})
