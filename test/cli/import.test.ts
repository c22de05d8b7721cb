import assert from 'node:assert/strict'
import { createReadStream, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { test } from 'node:test'
import { createGunzip, createGzip, gzipSync } from 'node:zlib'
import { extract, pack } from 'tar-stream'
import { parse } from 'yaml'
import { type Client, clientOf, type Json, onPostgres } from '../support/pinfold.ts'
import { createStorage, project, run, startInProcess, type TestStorage, tokenOf } from '../support/process.ts'

const samples = join(project, 'examples/advisories')
/** The whole data set, if it exists next to the repository. */
const whole = join(project, '../shared/data')

const commands = { advisories: ['advisories', 'import'], osv: ['vulnerabilities', 'import'] } as const
const importing = (storage: TestStorage, what: keyof typeof commands, ...from: string[]) =>
  run([...commands[what], ...storage.args, ...from], { env: storage.env })

async function withServer<T>(storage: TestStorage, work: (client: Client) => Promise<T>): Promise<T> {
  await using server = await startInProcess(storage)
  return await work(clientOf(server.url, await tokenOf(storage)))
}

const total = async (client: Client, query = '') =>
  Number((await client.get(`/vulnerabilities/v2/advisories?${query}`)).body.totalCount)
const metadataTotal = async (client: Client) => Number((await client.get('/advisory/v2/metadata')).body.totalCount)

function yamlOf(name: string, ...advisories: string[]): string {
  return `schema-version: 2.0.2\n\npackage:\n  name: ${name}\n\nadvisories:\n${advisories.join('\n')}`
}
const advisoryOf = (id: string, version = '1.10') => `  - id: ${id}
    aliases:
      - CVE-${id}
    events:
      - timestamp: 2024-01-02T03:04:05Z
        type: fixed
        data:
          fixed-version: ${version}
`

test('imports the samples once, without a server, into the public organization', async () => {
  await using storage = await createStorage()
  const first = await importing(storage, 'advisories', samples)
  assert.deepEqual(first, { code: 0, stdout: '174 advisories: 174 new, 0 changed, 0 unchanged\n', stderr: '' })
  assert.match((await importing(storage, 'osv', samples)).stdout, /^70 vulnerabilities: 70 new, /)
  assert.match(
    (await importing(storage, 'advisories', samples)).stdout,
    /^174 advisories: 0 new, 0 changed, 174 unchanged$/m,
  )
  assert.match(
    (await importing(storage, 'osv', samples)).stdout,
    /^70 vulnerabilities: 0 new, 0 changed, 70 unchanged$/m,
  )

  await withServer(storage, async (client) => {
    const { groups } = (await client.get('/iam/v2/groups?uidp.in_root=true')).body
    assert.deepEqual(
      groups.map(({ name }: Json) => name),
      ['public'],
    )
    assert.equal(await total(client, `uidp.children_of=${groups[0].uid}`), 174)
    const scored = (await client.get('/vulnerabilities/v2/advisories?page_size=200')).body.advisories
    assert.ok(scored.some(({ severities }: Json) => severities.length > 0))
    assert.equal((await client.get('/advisory/v2/documents')).body.totalCount, '8')
  })
})

test('an import sends data to the running server, into the given group', async () => {
  await using storage = await createStorage()
  await withServer(storage, async (client) => {
    const { uid } = (await client.post('/iam/v2/groups/', { name: 'acme' })).body
    const args = ['advisories', 'import', ...storage.args, samples, '--in', uid, '--author', 'team', '-o', 'json']
    const { code, stdout, stderr } = await run(args, { env: storage.env })
    assert.deepEqual([code, stderr], [0, ''])
    assert.deepEqual(JSON.parse(stdout), { created: 174, updated: 0, unchanged: 0, refused: 0 })
    assert.equal(await total(client, `uidp.children_of=${uid}&event_authors=team`), 174)
    const again = await run(
      args.map((arg) => (arg === uid ? 'acme' : arg)),
      { env: storage.env },
    )
    assert.deepEqual(JSON.parse(again.stdout), { created: 0, updated: 0, unchanged: 174, refused: 0 })
    const nowhere = await run(['advisories', 'import', ...storage.args, samples, '--in', 'acmee'], { env: storage.env })
    assert.equal(nowhere.code, 1)
    assert.match(nowhere.stderr, /no organi[sz]ation .*acmee.*\n.*acme/)
  })
})

test('importing a changed file changes its advisories, and versions stay unchanged text', async () => {
  await using storage = await createStorage()
  const file = join(storage.data, 'tool.advisories.yaml')
  mkdirSync(storage.data, { recursive: true })
  writeFileSync(file, yamlOf('tool', advisoryOf('CGA-1'), advisoryOf('CGA-2')))
  assert.match((await importing(storage, 'advisories', file)).stdout, /2 new/)
  writeFileSync(file, yamlOf('tool', advisoryOf('CGA-1', '1.20'), advisoryOf('CGA-2')))
  assert.match((await importing(storage, 'advisories', file)).stdout, /0 new, 1 changed, 1 unchanged/)
  await withServer(storage, async (client) => {
    const { advisories } = (await client.get('/vulnerabilities/v2/advisories?order_by=advisory_id')).body
    assert.deepEqual(
      advisories.map(({ events }: Json) => events[0].fixed.fixedVersion),
      ['1.20', '1.10'],
    )
    assert.equal(advisories[0].createTime, '2024-01-02T03:04:05.000Z')
  })
})

test('errors name file, line and field of invalid entries, and the other entries are imported', async () => {
  await using storage = await createStorage()
  const folder = join(storage.data, 'in')
  mkdirSync(folder, { recursive: true })
  const file = (name: string, text: string | Uint8Array) => writeFileSync(join(folder, name), text)
  const good = advisoryOf('CGA-0')
  file('a.advisories.yaml', yamlOf('a', good, advisoryOf('CGA-1').replace('fixed-version', 'fixed-verzion')))
  file(
    'b.advisories.yaml',
    yamlOf('b', advisoryOf('CGA-2').replace('type: fixed', 'type: solved'), advisoryOf('CGA-3')),
  )
  file('c.advisories.yaml', yamlOf('c', advisoryOf('CGA-4').replace('2024-01-02T03', '2024-13-02T03')))
  file('d.advisories.yaml', yamlOf('d', advisoryOf('CGA-5').replace('CVE-CGA-5', 'CVE with a gap')))
  file('e.advisories.yaml', yamlOf('e', advisoryOf('CGA-0')))
  file('f.advisories.yaml', `${yamlOf('f')}  - id: [`)
  file('g.advisories.yaml', yamlOf('g', '  - id: &a CGA-6\n    aliases: [*a]\n    events: []'))
  file('h.advisories.yaml', '[]')
  file('i.advisories.yaml', `${'['.repeat(20_000)}`)
  file('ignored.txt', 'nothing')
  const { code, stdout, stderr } = await importing(storage, 'advisories', folder)
  const told = stderr
    .trim()
    .split('\n')
    .map((line) => line.replace(`pinfold: ${folder}/`, '').split(': ').slice(0, 2))
  assert.equal(code, 1)
  assert.match(stdout, /^2 advisories: 2 new, 0 changed, 0 unchanged; 9 problems, see above$/m)
  const wanted = [
    ['a.advisories.yaml:23', 'events[0].data.fixed-verzion'],
    ['b.advisories.yaml:12', 'events[0].type'],
    ['c.advisories.yaml:11', 'events[0].timestamp'],
    ['d.advisories.yaml:9', 'aliases'],
    ['e.advisories.yaml:7', 'id'],
    ['f.advisories.yaml:7'],
    ['g.advisories.yaml:8', 'aliases[0]'],
    ['h.advisories.yaml:1', 'file'],
    ['i.advisories.yaml:1'],
  ]
  for (const [where, field] of wanted) {
    const found = told.find(([at]) => at === where || (field === undefined && at!.startsWith(where!.split(':')[0]!)))
    assert.ok(found, `${where} in ${stderr}`)
    if (field !== undefined) assert.equal(found[1], field, stderr)
  }
  await withServer(storage, async (client) => assert.equal(await total(client), 2))
})

test('errors for invalid vulnerabilities name file, line and field', async () => {
  await using storage = await createStorage()
  mkdirSync(storage.data, { recursive: true })
  const file = join(storage.data, 'x.jsonl.gz')
  const lines = [
    {
      id: 'A-1',
      aliases: null,
      severity: [
        { type: 'CVSS_V3', score: 'CVSS:3.1/AV:N' },
        { type: 'Ubuntu', score: 'low' },
      ],
    },
    { aliases: [] },
    { id: 'A-2', references: [{ type: 'NEWS', url: 'https://example.com' }] },
    { id: 'A-3', affected: [{ severity: 'high' }] },
    { id: 'A-4', published: 'yesterday' },
    { id: 'A-1' },
  ].map((record) => JSON.stringify(record))
  writeFileSync(file, gzipSync([...lines, '{"id":', ''].join('\n')))
  const { code, stdout, stderr } = await importing(storage, 'osv', file)
  assert.equal(code, 1)
  assert.match(stdout, /^1 vulnerabilities: 1 new/m)
  const told = stderr
    .trim()
    .split('\n')
    .map((line) => line.replace(`pinfold: ${file}:`, ''))
  assert.deepEqual(told.map((line) => line.split(': ').slice(0, 2).join(' ')).sort(), [
    '2 id',
    '3 references[0].type',
    '4 affected[0].severity',
    '5 published must be a valid time',
    '6 id',
    '7 is not valid JSON',
  ])
})

test('imports packages in vulnerability files as a source that covers nothing and deletes nothing', async () => {
  await using storage = await createStorage()
  mkdirSync(storage.data, { recursive: true })
  const file = join(storage.data, 'x.jsonl')
  const ranges = [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '1.2' }] }]
  const affected = [{ package: { ecosystem: 'PyPI', name: 'flask' }, ranges }]
  const severity = [{ type: 'CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H' }]
  const give = (...records: object[]) => writeFileSync(file, records.map((one) => JSON.stringify(one)).join('\n'))
  const source = async () => {
    const { stdout } = await run(['vulnerabilities', 'status', ...storage.args, '-o', 'json'], { env: storage.env })
    return (JSON.parse(stdout) as Json[]).map(({ name, records, ecosystems, error }) => [
      name,
      records,
      ecosystems,
      error,
    ])
  }
  give({ id: 'P-1', affected, severity }, { id: 'P-2', affected: [{ ...affected[0], package: { name: 'x' } }] })
  const { code, stderr } = await importing(storage, 'osv', file)
  assert.deepEqual([code, stderr], [1, `pinfold: ${file}:2: affected[0].package.ecosystem is required\n`])
  assert.deepEqual(await source(), [['import/osv', '1', [], '']])
  give({ id: 'P-2', affected, withdrawn: '2026-01-01T00:00:00Z' })
  assert.equal((await importing(storage, 'osv', file)).code, 0)
  assert.deepEqual(await source(), [['import/osv', '2', [], '']])
})

test('an import that covers an ecosystem is a data source for it, and withdraws missing records', async () => {
  await using storage = await createStorage()
  mkdirSync(storage.data, { recursive: true })
  const file = join(storage.data, 'x.jsonl')
  const ranges = [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '1.2' }] }]
  const affected = [{ package: { ecosystem: 'PyPI', name: 'flask' }, ranges }]
  const give = (...records: object[]) => writeFileSync(file, records.map((one) => JSON.stringify(one)).join('\n'))
  const source = async () => {
    const { stdout } = await run(['vulnerabilities', 'status', ...storage.args, '-o', 'json'], { env: storage.env })
    return (JSON.parse(stdout) as Json[]).map(({ name, records, ecosystems }) => [name, records, ecosystems])
  }
  const covering = async (...args: string[]) => importing(storage, 'osv', file, ...args)
  give({ id: 'P-1', affected }, { id: 'P-2', affected })
  assert.equal((await covering('--covers', 'PyPI')).code, 0)
  assert.deepEqual(await source(), [['import/osv/PyPI', '2', ['PyPI']]])
  give({ id: 'P-1', affected })
  assert.equal((await covering('--covers', 'PyPI')).code, 0)
  assert.deepEqual(await source(), [['import/osv/PyPI', '1', ['PyPI']]])
  assert.equal((await covering('--covers', 'a/b')).code, 64)
  const { code, stderr } = await covering('--covers', 'pypi')
  assert.equal(code, 64)
  assert.match(stderr, /--covers: pypi is not a supported ecosystem/)
})

test('an import with an invalid record counts as a failed read of its ecosystems', async () => {
  await using storage = await createStorage()
  mkdirSync(storage.data, { recursive: true })
  const file = join(storage.data, 'x.jsonl')
  const ranges = [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '1.2' }] }]
  const affected = [{ package: { ecosystem: 'PyPI', name: 'flask' }, ranges }]
  const give = (...lines: string[]) => writeFileSync(file, lines.join('\n'))
  const covering = async () => (await importing(storage, 'osv', file, '--covers', 'PyPI')).code
  const source = async () => {
    const { stdout } = await run(['vulnerabilities', 'status', ...storage.args, '-o', 'json'], { env: storage.env })
    return (JSON.parse(stdout) as Json[]).map(({ records, error, fetchTime }) => [records, error, Boolean(fetchTime)])
  }
  const good = JSON.stringify({ id: 'P-1', affected })
  give(good, 'no JSON')
  assert.equal(await covering(), 1)
  assert.deepEqual(await source(), [['1', '1 problem in the files', false]])
  give(good)
  assert.equal(await covering(), 0)
  assert.deepEqual(await source(), [['1', '', true]])
  const refused = { ...affected[0], package: { ecosystem: 'PyPI', name: 'x'.repeat(5000) } }
  give(good, JSON.stringify({ id: 'P-2', affected: [refused] }))
  assert.equal(await covering(), 1)
  assert.match((await source())[0]![1], /^\d problems? in the files$/)
})

test('reads archives file by file, and names a file that is not an archive', async () => {
  await using storage = await createStorage()
  mkdirSync(storage.data, { recursive: true })
  const tar = pack()
  tar.entry({ name: 'deep/a.advisories.yaml' }, yamlOf('a', advisoryOf('CGA-1')))
  tar.entry({ name: 'other.txt' }, 'nothing')
  tar.finalize()
  const file = join(storage.data, 'all.tar.gz')
  writeFileSync(file, await buffer(tar.pipe(createGzip())))
  assert.match((await importing(storage, 'advisories', file)).stdout, /^1 advisories: 1 new/)

  const sizeless = Buffer.alloc(2048)
  sizeless.write('a.advisories.yaml')
  sizeless[124] = 0xda
  sizeless.write('ustar', 257)
  sizeless.write('        ', 148)
  const sum = sizeless.subarray(0, 512).reduce((total, byte) => total + byte, 0)
  sizeless.write(sum.toString(8).padStart(6, '0'), 148)

  const damaged: [path: string, content: string | Buffer][] = [
    ['sizeless.tar', sizeless],
    ['broken.tar.gz', 'no archive'],
    ['not.advisories.yaml.gz', 'no gzip'],
  ]
  for (const [path, content] of damaged) {
    writeFileSync(join(storage.data, path), content)
    const broken = await importing(storage, 'advisories', join(storage.data, path))
    assert.deepEqual([broken.code, broken.stdout], [1, ''])
    assert.match(broken.stderr, new RegExp(`^pinfold: .*${path}: `))
  }
  const missing = await importing(storage, 'advisories', join(storage.data, 'nowhere'))
  assert.deepEqual([missing.code, missing.stderr], [1, `pinfold: ${join(storage.data, 'nowhere')}: does not exist\n`])
  assert.equal((await run(['advisories', 'import', ...storage.args], { env: storage.env })).code, 64)
})

type Entry = { package: string; id: string; aliases: string[]; events: Json[] }

/** Reads advisory files again without our own parser. */
function plainly(texts: readonly string[]): Entry[] {
  return texts.flatMap((text) => {
    const content = parse(text) as Json
    return (content.advisories as Json[]).map(({ id, aliases, events }) => {
      return { package: content.package.name, id, aliases, events }
    })
  })
}

/** Every filter that these files can match, in the simplest form. */
async function checkFilters(client: Client, entries: readonly Entry[]): Promise<void> {
  const inTime = (one: Entry) => one.events.toSorted((a, b) => Date.parse(a.timestamp) - Date.parse(b.timestamp))
  const newest = (one: Entry) => inTime(one).at(-1)!.type as string
  const scan = (one: Entry): Json => inTime(one).findLast(({ data }) => data.type === 'scan/v1')?.data.data ?? {}
  const has = (one: Entry, text: string) =>
    [one.package, scan(one).componentName ?? '', ...one.aliases].some((word) => word.toLowerCase().includes(text))
  const [early, late] = [entries[3]!, entries.at(-3)!]
  const kinds = [...new Set(entries.flatMap(({ events }) => events.map(({ type }) => type as string)))]
  const some = [entries[0]!, entries[Math.floor(entries.length / 2)]!, late]
  const cases: [query: string, holds: (one: Entry) => boolean][] = [
    ...some.flatMap((entry): typeof cases => [
      [`artifact_names=${entry.package}`, (one) => one.package === entry.package],
      [`origin=${entry.package}&artifact_names=nobody`, (one) => one.package === entry.package],
      [`query=${entry.aliases[0]!.slice(2, 12)}`, (one) => has(one, entry.aliases[0]!.slice(2, 12).toLowerCase())],
    ]),
    ...kinds.flatMap((kind): typeof cases => {
      const value = `EVENT_TYPE_FILTER_${kind.toUpperCase().replaceAll('-', '_')}`
      return [
        [`event_types=${value}`, (one) => one.events.some(({ type }) => type === kind)],
        [`latest_event_type=${value}`, (one) => newest(one) === kind],
      ]
    }),
    [`advisory_ids=${early.id},${late.id}`, (one) => one === early || one === late],
    ['component_types=go-module', (one) => scan(one).componentType === 'go-module'],
    [
      `component_types=go-module,python&query=a`,
      (one) => ['go-module', 'python'].includes(scan(one).componentType) && has(one, 'a'),
    ],
    ['component_locations=/usr/bin/apko', (one) => scan(one).componentLocation === '/usr/bin/apko'],
    ['component_names=stdlib', (one) => scan(one).componentName === 'stdlib'],
    ['query=cve', (one) => has(one, 'cve')],
    ['query=OPENSSL', (one) => has(one, 'openssl')],
    ['artifact_types=apk', () => true],
    ['artifact_types=image', () => false],
    ['event_authors=import', () => true],
    ['event_review_states=REVIEW_STATE_APPROVED', () => true],
    ['event_review_states=REVIEW_STATE_PENDING', () => false],
    ['exclude_event_authors=import', () => false],
    [
      `aliases=${early.aliases[0]},${late.aliases[0]}`,
      (one) => one.aliases.some((alias) => alias === early.aliases[0] || alias === late.aliases[0]),
    ],
  ]
  for (const [query, holds] of cases) {
    const wanted = entries.filter(holds).map(({ id }) => id)
    const found: string[] = []
    for (let token = ''; ; ) {
      const { body } = await client.get(`/vulnerabilities/v2/advisories?page_size=200&${query}&page_token=${token}`)
      assert.equal(body.totalCount, String(wanted.length), query)
      found.push(...body.advisories.map(({ advisoryId }: Json) => advisoryId))
      token = body.nextPageToken
      if (!token) break
    }
    assert.deepEqual(found.sort(), wanted.sort(), query)
  }
}

test('filters return the same samples as a full scan of their YAML', async () => {
  await using storage = await createStorage()
  await importing(storage, 'advisories', samples)
  const texts = globSync(`${samples}/*.yaml`).map((file) => readFileSync(file, 'utf8'))
  await withServer(storage, (client) => checkFilters(client, plainly(texts)))
})

async function membersOf(archive: string): Promise<string[]> {
  const texts: string[] = []
  for await (const entry of createReadStream(archive).pipe(createGunzip()).pipe(extract())) {
    const content = await text(entry)
    if (content !== '') texts.push(content)
  }
  return texts
}

test('imports the whole data set once, and filters return the same as a full scan', {
  // The large data set runs on one engine only; the other one has the samples.
  skip: (onPostgres && 'on SQLite') || (!existsSync(whole) && 'no data beside'),
}, async () => {
  await using storage = await createStorage()
  const archive = join(whole, 'advisories/wolfi-advisories.tar.gz')
  const vulns = join(whole, 'vulns')
  const done = (stdout: string) => ({ code: 0, stdout: `${stdout}\n`, stderr: '' })
  for (const told of ['6696 new, 0 changed, 0 unchanged', '0 new, 0 changed, 6696 unchanged']) {
    assert.deepEqual(await importing(storage, 'advisories', archive), done(`6696 advisories: ${told}`))
  }
  for (const told of ['1900 new, 0 changed, 0 unchanged', '0 new, 0 changed, 1900 unchanged']) {
    assert.deepEqual(await importing(storage, 'osv', vulns), done(`1900 vulnerabilities: ${told}`))
  }
  await withServer(storage, async (client) => {
    assert.equal(await metadataTotal(client), 1900)
    const entries = plainly(await membersOf(archive))
    assert.deepEqual([entries.length, await total(client)], [6696, 6696])
    assert.equal(entries.flatMap(({ events }) => events).length, 10_894)
    await checkFilters(client, entries)
    const { documents, totalCount } = (await client.get('/advisory/v2/documents?id=curl')).body
    assert.deepEqual([totalCount, documents[0].id], ['1', 'curl'])
    assert.equal((await client.get('/advisory/v2/documents?page_size=1')).body.totalCount, '394')
  })
})
