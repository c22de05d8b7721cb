// Long operations show progress on a terminal, and none if the output goes to a file or a program.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { migrate } from '#db/migrate.ts'
import { openDb } from '#db/open.ts'
import { sql } from '#db/sql.ts'
import { osv, startMirror } from '../support/mirror.ts'
import {
  createStorage,
  type Env,
  program,
  project,
  run,
  runProcess,
  startInProcess,
  tokenOf,
} from '../support/process.ts'
import { zipOf } from '../support/zip.ts'

/** Runs the command in its own terminal, and returns the progress lines. */
async function onTerminal(args: readonly string[], env: Env): Promise<{ code: number | null; shown: string[] }> {
  const line = [program, ...args].map((word) => `'${word}'`).join(' ')
  const { code, stdout } = await runProcess(['-qefc', `exec ${line}`, '/dev/null'], { command: 'script', env })
  return {
    code,
    shown: stdout
      .replaceAll('\r\u001b[K', '\n')
      .split(/\r?\n/)
      .filter((one) => one !== ''),
  }
}

/** Each command accepts existing results, so it can run twice. */
async function bothWays(args: readonly string[], env: Env, shows: RegExp, says: RegExp): Promise<void> {
  const watched = await onTerminal(args, env)
  assert.equal(watched.code, 0, watched.shown.join('\n'))
  assert.ok(
    watched.shown.some((line) => shows.test(line)),
    `${args.join(' ')} showed ${JSON.stringify(watched.shown)}`,
  )
  assert.match(watched.shown.at(-1)!, says)
  const piped = await runProcess(args, { env })
  assert.deepEqual([piped.code, piped.stderr], [0, ''])
  assert.match(piped.stdout, says)
  assert.ok(!piped.stdout.includes('\r') && !piped.stdout.includes('\u001b'))
}

test('migrations, imports and blob collection show progress on a terminal, and nothing in a pipe', async () => {
  await using storage = await createStorage({ isEmpty: true })
  const { env, args } = storage
  const migrated = await onTerminal(['migrate', ...args], env)
  assert.equal(migrated.code, 0, migrated.shown.join('\n'))
  assert.ok(migrated.shown.some((line) => /^0001-.* …$/.test(line)))
  assert.ok(migrated.shown.includes('the database is up to date'))
  await using fresh = await createStorage({ isEmpty: true })
  const piped = await runProcess(['migrate', ...fresh.args], { env: fresh.env })
  assert.deepEqual(piped, { code: 0, stdout: 'the database is up to date\n', stderr: '' })

  const samples = join(project, 'examples/advisories')
  const bar = /^\[[#.]{24}\] [\d,]+ of 174 advisories$/
  await bothWays(['advisories', 'import', ...args, samples], env, bar, /unchanged/)
  await bothWays(['server', 'gc', ...args], env, /^looking for blobs/, /removed 0 links/)
})

test('shows the number of rows that a backfill completed, in batches', async () => {
  await using storage = await createStorage({ isEmpty: true })
  const db = await openDb({ database: storage.database, file: join(storage.data, 'pinfold.db') })
  try {
    const shown: string[] = []
    const left = [500, 200, 0]
    const migrations = [
      { id: '0001-expand-things', up: () => ['CREATE TABLE things (id INTEGER)'] },
      {
        id: '0002-backfill-things',
        batch: async (tx: Parameters<Parameters<typeof db.tx>[0]>[0]) => {
          await tx.run(sql`INSERT INTO things (id) VALUES (1)`)
          return left.shift() ?? 0
        },
      },
    ]
    await migrate(db, migrations, { progress: (id, rows) => void shown.push(`${id} ${rows}`) })
    assert.deepEqual(shown, [
      '0001-expand-things 0',
      '0002-backfill-things 0',
      '0002-backfill-things 500',
      '0002-backfill-things 700',
    ])
    await migrate(db, migrations, { progress: (id) => void shown.push(id) })
    assert.equal(shown.length, 4)
  } finally {
    await db.close()
  }
})

test('shows the bytes of a pushed layer on a terminal', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  const entries = Array.from({ length: 50 }, (_, i) => [`PYSEC-${i}.json`, osv(`PYSEC-${i}`)])
  await using mirror = await startMirror({ 'osv/PyPI/all.zip': { body: zipOf(Object.fromEntries(entries)) } })
  const registry = new URL(server.url).host
  const docker = join(storage.data, 'docker')
  mkdirSync(docker)
  const auth = Buffer.from(`_token:${await tokenOf(storage, ['--audience', registry])}`).toString('base64')
  writeFileSync(join(docker, 'config.json'), JSON.stringify({ auths: { [registry]: { auth } } }))
  const asOperator = { PINFOLD_API: server.url, PINFOLD_TOKEN: await tokenOf(storage) }
  const made = await run(['orgs', 'create', 'acme'], { env: asOperator })
  assert.equal(made.code, 0, made.stderr)
  const pack = [
    'vulnerabilities',
    'pack',
    `${registry}/acme/data:latest`,
    '--mirror',
    mirror.url,
    '--source',
    'osv/PyPI',
  ]
  const env = { DOCKER_CONFIG: docker }
  const watched = await onTerminal(pack, env)
  assert.equal(watched.code, 0, watched.shown.join('\n'))
  const bar = watched.shown.filter((line) => /bytes of osv\/PyPI pushed$/.test(line))
  const [, done, all] = /^\[#{24}\] ([\d,]+) of ([\d,]+) bytes/.exec(bar.at(-1) ?? '') ?? []
  assert.ok(done !== undefined && done === all, JSON.stringify(watched.shown))
  const piped = await runProcess(pack, { env })
  assert.deepEqual([piped.code, piped.stderr], [0, ''])
})
