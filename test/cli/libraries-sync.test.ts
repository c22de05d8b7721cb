import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { CliError } from '../../src/cli/framework/cli-error.ts'
import type { Options } from '../../src/cli/framework/command.ts'
import { withOperator } from '../../src/cli/framework/operator.ts'
import { librariesSync } from '../../src/cli/imports/libraries-sync.ts'
import { type FakeAnswer, mavenMetadata, projectPage, startIndex } from '../support/fake-index.ts'
import type { Json } from '../support/pinfold.ts'
import { createStorage, type TestStorage } from '../support/process.ts'

/** Runs the command in this process, and returns an exception as its failure. */
async function sync(storage: TestStorage, options: Options) {
  const [out, err]: [string[], string[]] = [[], []]
  const terminal = {
    env: storage.env,
    input: async () => '',
    print: (line: string) => void out.push(line),
    say: (line: string) => void err.push(line),
    untilSignaled: async () => {},
  }
  const at = { data: storage.data, ...(storage.database ? { database: storage.database } : {}) }
  const { code, failure } = await librariesSync.run(terminal, { ...at, output: 'json', ...options }).then(
    (result) => ({ code: result, failure: '' }),
    (error: unknown) => {
      if (!(error instanceof CliError)) throw error
      return { code: error.exitCode, failure: error.message }
    },
  )
  return { code, failure, err: err.join('\n'), counts: out.length > 0 ? (JSON.parse(out.join('')) as Json) : undefined }
}

/** The libraries in the database, each with its versions, newest first. */
async function stored(storage: TestStorage): Promise<Record<string, string[]>> {
  const terminal = {
    env: storage.env,
    input: async () => '',
    print: () => {},
    say: () => {},
    untilSignaled: async () => {},
  }
  const at = { data: storage.data, ...(storage.database ? { database: storage.database } : {}) }
  return withOperator(terminal, at, async (api) => {
    const { artifacts } = await api.get('/libraries/v2/artifacts?ecosystems=1,2&page_size=200')
    const entries = (artifacts as Json[]).map(async ({ uid, name }) => {
      const { artifactVersions } = await api.get(`/libraries/v2/artifacts/${encodeURIComponent(uid)}/versions`)
      return [name, (artifactVersions as Json[]).map(({ version }) => version)]
    })
    return Object.fromEntries(await Promise.all(entries))
  })
}

const counts = (created: number, updated: number, unchanged: number, versionsCreated: number, refused = 0) => {
  return { created, updated, unchanged, versionsCreated, versionsUpdated: 0, refused }
}

test('imports named projects of a Python index, and the second time nothing changes', async () => {
  await using storage = await createStorage()
  await using index = await startIndex({
    '/simple/flask/': projectPage('Flask', '2.0rc1', '1.0'),
    '/simple/zope-interface/': projectPage('zope.interface', '5.0'),
  })
  const options = { pythonIndex: `${index.url}/simple`, name: ['Flask', 'zope.Interface'] }
  assert.deepEqual((await sync(storage, options)).counts, counts(2, 0, 0, 3))
  assert.equal(index.requests[0]!.headers.accept, 'application/vnd.pypi.simple.v1+json')
  assert.deepEqual(await stored(storage), { flask: ['2.0rc1', '1.0'], 'zope-interface': ['5.0'] })

  assert.deepEqual((await sync(storage, options)).counts, counts(0, 0, 2, 0))
  index.answers['/simple/flask/'] = projectPage('flask', '2.0rc1', '1.0', '2.0')
  assert.deepEqual((await sync(storage, options)).counts, counts(0, 1, 1, 1))
})

test('imports artifacts of a Maven repository', async () => {
  await using storage = await createStorage()
  await using repository = await startIndex({
    '/maven2/com/google/guava/guava/maven-metadata.xml': mavenMetadata('com.google.guava:guava', '9.0', '31.1-jre'),
    '/maven2/junit/junit/maven-metadata.xml': mavenMetadata('junit:junit', '4.13', '4.13-rc-1'),
  })
  const names = join(storage.data, 'names')
  writeFileSync(names, '# the usual\ncom.google.guava:guava\n\njunit:junit # and this\n')
  const options = { mavenRepository: `${repository.url}/maven2/`, names }
  const { code, counts: done } = await sync(storage, options)
  assert.deepEqual([code, done], [0, counts(2, 0, 0, 4)])
  assert.deepEqual(await stored(storage), {
    'com.google.guava:guava': ['31.1-jre', '9.0'],
    'junit:junit': ['4.13', '4.13-rc-1'],
  })
  assert.deepEqual((await sync(storage, options)).counts, counts(0, 0, 2, 0))
})

test('--all with a limit imports the first projects of a Python index by name', async () => {
  await using storage = await createStorage()
  const projects = ['Beta', 'alpha', 'gamma', 'alpha', 'delta'].map((name) => ({ name }))
  await using index = await startIndex({
    '/simple/': { body: { meta: {}, projects } },
    '/simple/alpha/': projectPage('alpha', '1'),
    '/simple/beta/': projectPage('beta', '1'),
    '/simple/delta/': projectPage('delta'),
  })
  const { counts: done, err } = await sync(storage, { pythonIndex: `${index.url}/simple`, all: true, limit: '3' })
  assert.deepEqual(done, counts(2, 0, 0, 2))
  assert.match(err, /first 3 of 4/)
  assert.deepEqual(Object.keys(await stored(storage)), ['alpha', 'beta'])
})

test('an interrupted run continues from its last project, and a completed run starts again', async () => {
  await using storage = await createStorage()
  const names = Array.from({ length: 150 }, (_, i) => `lib-${String(i).padStart(3, '0')}`)
  await using index = await startIndex(Object.fromEntries(names.map((name) => [`/${name}/`, projectPage(name, '1')])))
  index.answers['/lib-100/'] = { gone: true }
  index.answers['/lib-003/'] = { status: 404 }
  const options = { pythonIndex: index.url, name: names }

  const broken = await sync(storage, options)
  assert.equal(broken.code, 69)
  assert.match(broken.failure, /^\/lib-100\/: the host cannot be reached\n.*run the same command again to continue/)
  assert.match(broken.err, /^pinfold: \/lib-003\/: the source does not have it$/m)
  const kept = Object.keys(await stored(storage))
  assert.deepEqual(
    kept,
    names.slice(0, 64).filter((name) => name !== 'lib-003'),
  )

  index.answers['/lib-100/'] = projectPage('lib-100', '1')
  index.requests.length = 0
  const rest = await sync(storage, options)
  assert.match(rest.err, new RegExp(`continuing after ${kept.at(-1)}`))
  assert.deepEqual(rest.counts, counts(86, 0, 0, 86))
  assert.deepEqual(
    index.paths().sort(),
    names.slice(64).map((name) => `/${name}/`),
  )

  index.requests.length = 0
  assert.deepEqual((await sync(storage, options)).counts, counts(0, 0, 149, 0, 1))
  assert.equal(index.requests.length, 150)
})

test('a different request, and --restart, do not continue an interrupted run', async () => {
  await using storage = await createStorage()
  const names = Array.from({ length: 70 }, (_, i) => `lib-${String(i).padStart(2, '0')}`)
  await using index = await startIndex(Object.fromEntries(names.map((name) => [`/${name}/`, projectPage(name, '1')])))
  index.answers['/lib-69/'] = { status: 403 }
  const options = { pythonIndex: index.url, name: names }
  assert.equal((await sync(storage, options)).code, 77)

  index.requests.length = 0
  assert.equal((await sync(storage, { ...options, name: ['lib-00'] })).code, 0)
  assert.deepEqual(index.paths(), ['/lib-00/'])
  index.answers['/lib-69/'] = projectPage('lib-69', '1')
  index.requests.length = 0
  assert.deepEqual((await sync(storage, { ...options, restart: true })).counts, counts(6, 0, 64, 6))
  assert.equal(index.requests.length, 70)
})

test('names a project with malformed data and skips it completely, and imports the others', async () => {
  await using storage = await createStorage()
  const page = (change: (body: Json) => void): FakeAnswer => {
    const answer = projectPage('bad', '1.0', '2.0')
    change(answer.body as Json)
    return answer
  }
  const wrong: Record<string, [FakeAnswer, RegExp]> = {
    'bad-json': [{ body: '<html>' }, /the response is not JSON/],
    'bad-encoding': [{ headers: { 'content-encoding': 'gzip' }, body: 'x' }, /the response is compressed/],
    'bad-utf8': [{ body: new Uint8Array([0x22, 0xff, 0x22]) }, /the response is not UTF-8 text/],
    'bad-list': [{ body: [] as object }, /must be an object/],
    'bad-name': [projectPage('other', '1'), /name: must be bad-name/],
    'bad-files': [{ body: { name: 'bad-files', files: 'none' } }, /files: must be a list/],
    'bad-file': [
      page((body) => Object.assign(body, { name: 'bad-file' }).files.push(7)),
      /files\[2\]: must be an object/,
    ],
    'bad-size': [
      page((body) => Object.assign(Object.assign(body, { name: 'bad-size' }).files[1], { size: -1 })),
      /files\[1\]\.size: must be/,
    ],
    'bad-time': [
      page((body) => Object.assign(Object.assign(body, { name: 'bad-time' }).files[0], { 'upload-time': 'now' })),
      /files\[0\]\.upload-time: must be/,
    ],
    'bad-version': [projectPage('bad-version', 'é1', '1.0'), /versions\[0\]\.version: must be visible ASCII/],
    missing: [{ status: 404 }, /the source does not have it/],
  }
  await using index = await startIndex({
    '/good/': projectPage('good', '1'),
    ...Object.fromEntries(Object.entries(wrong).map(([name, [answer]]) => [`/${name}/`, answer])),
  })
  const {
    code,
    err,
    counts: done,
  } = await sync(storage, { pythonIndex: index.url, name: ['good', ...Object.keys(wrong)] })
  assert.deepEqual([code, done], [1, counts(1, 0, 0, 1, Object.keys(wrong).length)])
  for (const [name, [, expected]] of Object.entries(wrong)) {
    const line = err.split('\n').find((one) => one.startsWith(`pinfold: /${name}/: `))
    assert.match(line ?? '', expected, err)
  }
  assert.deepEqual(await stored(storage), { good: ['1'] })
})

test('names hostile or invalid Maven metadata, and skips only this artifact', async () => {
  await using storage = await createStorage()
  const bomb = `<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa">${Array.from({ length: 9 }, (_, i) => `<!ENTITY a${i} "${'&a;'.repeat(10)}">`).join('')}]><metadata><groupId>&a8;</groupId></metadata>`
  const versions = (inside: string) => ({
    body: `<metadata><versioning><versions>${inside}</versions></versioning></metadata>`,
  })
  const wrong: Record<string, [FakeAnswer, RegExp]> = {
    bomb: [{ body: bomb }, /must not have a document type/],
    deep: [{ body: '<a>'.repeat(5000) + '</a>'.repeat(5000) }, /is not the metadata/],
    open: [{ body: '<metadata><versioning>' }, /is not the metadata/],
    proto: [{ body: '<metadata><__proto__>x</__proto__></metadata>' }, /is not the metadata/],
    html: [{ body: '<html><body>no</body></html>' }, /is not the metadata/],
    other: [mavenMetadata('g:another', '1'), /artifactId: must be/],
    entity: [versions('<version>1&amp;2</version>'), /versioning\.versions\.version\[0\]/],
    nested: [versions('<version>1</version><version><x>1</x></version>'), /versioning\.versions\.version\[1\]/],
    large: [versions('<version>1</version>'.repeat(200_000)), /the response is too large/],
  }
  const path = (name: string) => `/g/${name}/maven-metadata.xml`
  await using repository = await startIndex({
    [path('good')]: mavenMetadata('g:good', '1'),
    ...Object.fromEntries(Object.entries(wrong).map(([name, [answer]]) => [path(name), answer])),
  })
  const name = ['good', ...Object.keys(wrong)].map((artifact) => `g:${artifact}`)
  const { code, err, counts: done } = await sync(storage, { mavenRepository: repository.url, name })
  assert.deepEqual([code, done], [1, counts(1, 0, 0, 1, Object.keys(wrong).length)])
  for (const [artifact, [, expected]] of Object.entries(wrong)) {
    const line = err.split('\n').find((one) => one.startsWith(`pinfold: ${path(artifact)}: `))
    assert.match(line ?? '', expected, err)
  }
})

test('recognizes remediated builds by their source', async () => {
  await using storage = await createStorage()
  await using index = await startIndex({
    '/fixed/': projectPage('fixed', '1.0'),
    '/plain/': projectPage('plain', '1.0'),
  })
  await sync(storage, { pythonIndex: index.url, name: ['plain'] })
  await sync(storage, { pythonIndex: index.url, name: ['fixed'], remediated: true })
  const terminal = {
    env: storage.env,
    input: async () => '',
    print: () => {},
    say: () => {},
    untilSignaled: async () => {},
  }
  const at = { data: storage.data, ...(storage.database ? { database: storage.database } : {}) }
  const { artifacts } = await withOperator(terminal, at, (api) =>
    api.get('/libraries/v2/artifacts?ecosystems=2&remediated=true'),
  )
  assert.deepEqual(
    (artifacts as Json[]).map(({ name }) => name),
    ['fixed'],
  )
})

test('sends a credential only to its source, and prints it in no message', async () => {
  await using storage = await createStorage()
  await using elsewhere = await startIndex({ '/stolen/': projectPage('stolen', '1') })
  await using index = await startIndex({
    '/flask/': projectPage('flask', '1'),
    '/moved/': { status: 302, headers: { location: '/here/moved/' } },
    '/here/moved/': projectPage('moved', '1'),
    '/stolen/': { status: 302, headers: { location: `${elsewhere.url}/stolen/` } },
  })
  const authorization = join(storage.data, 'header')
  writeFileSync(authorization, 'Bearer s3cret\n')
  const fine = await sync(storage, { pythonIndex: index.url, name: ['flask', 'moved'], authorization })
  assert.deepEqual(fine.counts, counts(2, 0, 0, 2))
  assert.ok(index.requests.every(({ headers }) => headers.authorization === 'Bearer s3cret'))
  const led = await sync(storage, { pythonIndex: index.url, name: ['stolen'], authorization })
  assert.match(led.failure, /the redirect is not allowed/)
  assert.equal(elsewhere.requests.length, 0)
  assert.doesNotMatch(led.failure + led.err, /s3cret/)
})

test('requires https for a source on another machine, for each of its URLs', async () => {
  await using storage = await createStorage()
  for (const pythonIndex of ['http://192.0.2.1', 'http://10.0.0.1', 'http://localhost.example.com']) {
    const open = await sync(storage, { pythonIndex, name: ['flask'] })
    assert.match(open.failure, /^\/flask\/: the URL does not use https/, pythonIndex)
  }
})

test('refuses conflicting options before sending a request or opening the database', async () => {
  await using storage = await createStorage()
  const url = 'https://packages.example.com'
  const cases: [Options, RegExp][] = [
    [{}, /--python-index or --maven-repository/],
    [{ pythonIndex: url, mavenRepository: url }, /--python-index or --maven-repository/],
    [{ pythonIndex: 'nonsense', all: true }, /--python-index must be an https/],
    [{ pythonIndex: 'file:///etc/passwd', all: true }, /must be an https/],
    [{ pythonIndex: 'https://me:s3cret@packages.example.com', all: true }, /must not contain a user name or password/],
    [{ pythonIndex: `${url}/?token=s3cret`, all: true }, /must not have a query/],
    [{ pythonIndex: url }, /--name or --names, or give --all/],
    [{ pythonIndex: url, name: ['../etc'] }, /is not the name of a Python package/],
    [{ mavenRepository: url, all: true }, /has no list of its libraries/],
    [{ mavenRepository: url, name: ['guava'] }, /give GROUP:ARTIFACT/],
    [{ mavenRepository: url, name: ['g:..'] }, /give GROUP:ARTIFACT/],
    [{ mavenRepository: url, name: ['..:a'] }, /give GROUP:ARTIFACT/],
    [{ pythonIndex: url, all: true, limit: '0' }, /--limit/],
    [{ pythonIndex: url, name: ['a'], limit: '5' }, /--limit needs --all/],
    [{ pythonIndex: url, name: ['a'], all: true }, /--all cannot be combined with --name or --names/],
    [{ pythonIndex: url, names: '/nowhere/names' }, /cannot be read/],
    [{ pythonIndex: url, name: ['a'], authorization: '/nowhere/header' }, /cannot be read/],
  ]
  for (const [options, expected] of cases) {
    const { code, failure } = await sync(storage, options)
    assert.equal(code, 64, failure)
    assert.match(failure, expected)
    assert.doesNotMatch(failure, /s3cret/)
  }
})
