import assert from 'node:assert/strict'
import { globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { migrations } from '#db/migrations/all.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const sources = globSync('{src,scripts,bench,examples}/**/*.ts', { cwd: root })
const tests = globSync(['test/**/*.ts', 'src/**/*.test.ts'], { cwd: root })

test('no file exceeds its line limit', () => {
  const lines = (file: string) => read(file).split('\n').length
  const long = [
    ...sources.filter((file) => !file.endsWith('.test.ts') && lines(file) > 400),
    ...tests.filter((file) => lines(file) > 600),
  ]
  assert.deepEqual(long, [])
})

test('only stores and src/db contain SQL', () => {
  const strays = sources.filter((file) => {
    if (
      file.endsWith('.test.ts') ||
      file.startsWith('src/db/') ||
      file.endsWith('.store.ts') ||
      file.startsWith('bench/')
    )
      return false
    return /\b(?:SELECT\s[\s\S]{1,400}\sFROM|INSERT\s+INTO|DELETE\s+FROM)\b/.test(read(file))
  })
  assert.deepEqual(strays, [])
})

test('no source file spells an event type, since the contract declares them', () => {
  const spelled = /\bdev\.pinfold\.[a-z$]/
  const strays = sources.filter((file) => file.startsWith('src/') && !file.endsWith('.test.ts'))
  assert.deepEqual(
    strays.filter((file) => spelled.test(read(file))),
    [],
  )
  assert.match(read('gen/event-names.ts'), spelled)
})

test('jobs have no timers: workers.ts decides when a job runs', () => {
  const own = sources.filter((file) => file.endsWith('.job.ts'))
  assert.ok(own.length > 5)
  assert.deepEqual(
    own.filter((file) => /\bset(?:Timeout|Interval)\b|node:timers/.test(read(file))),
    [],
  )
})

test('nothing updates the tag history, and only the command for erasing deletes from it', () => {
  const changing = /\b(?:UPDATE|DELETE\s+FROM|REPLACE\s+INTO|DROP\s+TABLE|ALTER\s+TABLE)\s+tag_history\b[^`$]*/g
  const store = 'src/domains/registry/tags/tag-history.store.ts'
  // It has replaced the table by one with the same rows.
  const searched = sources.filter((file) => file !== 'src/db/migrations/0014-ledger.ts')
  const changes = searched.flatMap((file) => (read(file).match(changing) ?? []).map((text) => `${file}: ${text}`))
  assert.deepEqual(changes, [`${store}: DELETE FROM tag_history WHERE repo_id = `])
  assert.doesNotMatch(read(store), /DO UPDATE/)
  assert.deepEqual(callersOf('deleteHistory'), ['src/domains/ledger/ledgers/ledgers.service.ts'])
})

test('only one file moves tags and inserts into the tag history', () => {
  const moves = 'src/domains/registry/tags/tag-moves.service.ts'
  const writing = ['insertTag', 'patchTag', 'deleteTag', 'deleteTagsWhere', 'insertRecords', 'insertDeletions']
  for (const name of writing) assert.deepEqual(callersOf(name), [moves], name)
  const tables = /\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(?:tags|tag_history)\b/
  const writers = sources.filter((file) => !/^(?:src\/db\/migrations|bench)\//.test(file) && tables.test(read(file)))
  assert.deepEqual(writers.sort(), [
    'src/domains/registry/tags/tag-history.store.ts',
    'src/domains/registry/tags/tags.store.ts',
  ])
})

/** The files that use a function of the stores of tags and ledger, under whatever name they import these. */
function callersOf(name: string): string[] {
  const imports = /import (?:\* as (\w+)|\{([^}]*)\}) from '[^']*\/tag(?:s|-history)\.store\.ts'/g
  return sources.filter((file) => {
    const text = read(file)
    return [...text.matchAll(imports)].some(([, whole, named]) => {
      return new RegExp(`\\b${name}\\b`).test(named ?? '') || new RegExp(`\\b${whole}\\.${name}\\b`).test(text)
    })
  })
}

test('log messages are fixed texts in lower case', () => {
  const wrong = sources.flatMap((file) =>
    [...read(file).matchAll(/\blog\.(?:debug|info|warn|error)\((.*)/g)].flatMap(([, args]) => {
      return /^'[a-z][^'A-Z]*'/.test(args!) ? [] : [`${file}: ${args}`]
    }),
  )
  assert.deepEqual(wrong, [])
})

test('no barrel files, no default exports, and no to-do comments without an issue number', () => {
  const named = sources.filter((file) => /(?:^|\/)(?:index|utils?|helpers?)\.ts$/.test(file))
  assert.deepEqual(named, [])
  for (const file of [...sources, ...tests]) {
    const loose = read(file).match(new RegExp(`\\b(?:${'TO'}DO(?!\\(#\\d+\\))|${'FIX'}ME|${'XX'}X)\\b`))
    assert.equal(loose, null, file)
  }
})

test('the programs in bin are executable', () => {
  for (const file of ['bin/pinfold', 'bin/pinfold-node', 'bin/install-once', 'bin/bundle-once']) {
    assert.ok(statSync(join(root, file)).mode & 0o100, file)
  }
})

test('one file knows where the files of the program are, so that the bundle and the executable find them', () => {
  const places: [RegExp, string[]][] = [
    // The build replaces these two calls.
    [/\bimport\.meta\b/, ['src/api/naming/health.ts', 'src/api/naming/reflection.ts', 'src/lib/files/assets.ts']],
    [/\bcreateRequire\(/, ['src/api/naming/health.ts', 'src/api/naming/reflection.ts']],
    [/\bnew Worker\((?!threadScript)/, []],
    [/\bfork\(|\b__(?:dir|file)name\b/, []],
  ]
  const code = sources.filter((file) => file.startsWith('src/') && !file.endsWith('.test.ts'))
  for (const [pattern, files] of places)
    assert.deepEqual(code.filter((file) => pattern.test(read(file))).sort(), files, String(pattern))
})

test('the lock file contains no download URL', () => {
  assert.doesNotMatch(read('package-lock.json'), /"resolved": "http/)
})

test('one file alone does each step of a request, such as its id, its log line and its answer', () => {
  const once: Record<string, RegExp> = {
    'src/edge/arrival.ts': /\bnewRequestId\(|\.requests\.observe\(|\binFlight\.inc\(/,
    'src/edge/sources.ts': /\bsourceAddress\(/,
    'src/edge/caller.ts': /\bcreateRights\(/,
    'src/edge/safe-headers.ts': /nosniff/,
  }
  const definitions = ['src/lib/request-id.ts', 'src/lib/net/source-address.ts', 'src/domains/iam/access/rights.ts']
  // Exceptions: calls without a request have no arrival time. The possible rights of a token are read before the token exists.
  // Rights of another caller, such as the author of an invitation, are read in the name of that caller.
  const others = [
    ...definitions,
    'src/api/port/one-port.ts',
    'src/api/port/waiting.ts',
    'src/issuer/narrowing.ts',
    'src/domains/iam/roles/grants.ts',
    'src/domains/mirrors/copies/syncs.service.ts',
  ]
  for (const [home, spelled] of Object.entries(once)) {
    const found = sources.filter(
      (file) => file.startsWith('src/') && !file.endsWith('.test.ts') && spelled.test(read(file)),
    )
    assert.deepEqual(
      found.filter((file) => !others.includes(file)),
      [home],
    )
  }
})

test('only two files create metrics, and the values of every label are a fixed set', () => {
  const making = sources.filter((file) => file.startsWith('src/') && /'prom-client'|\blabelNames\b/.test(read(file)))
  assert.deepEqual(making, ['src/labelled-metrics.ts', 'src/metrics.ts'])
  // The function that limits the values of labels has one call for each of the three kinds.
  const named = making.flatMap((file) => [...read(file).matchAll(/labelNames/g)])
  assert.equal(named.length, 3)
  assert.equal([...read('src/labelled-metrics.ts').matchAll(/labelNames: names\b/g)].length, 3)
})

test('lists the migrations in the order of their numbers, each once', () => {
  const ids = migrations.map(({ id }) => id)
  assert.deepEqual(ids, [...new Set(ids)].sort())
  assert.equal(ids.length, sources.filter((file) => /^src\/db\/migrations\/\d/.test(file)).length)
})
