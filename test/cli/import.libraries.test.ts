import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { clientOf } from '../support/pinfold.ts'
import { createStorage, project, run, startInProcess, type TestStorage, tokenOf } from '../support/process.ts'

const python = {
  ecosystem: 'python',
  packages: [
    {
      name: 'Flask',
      versions: [
        {
          version: '2.0',
          uploadTime: '2026-02-01T10:00:00.500Z',
          files: [
            { filename: 'Flask-2.0.tar.gz', size: 70, uploadTime: '2026-02-01T10:00:00.500Z' },
            { filename: 'Flask-2.0-py3-none-any.whl', size: 30, uploadTime: '2026-02-01T12:00:00+02:00' },
            { filename: 'Flask-2.0-cp39-win_amd64.whl', size: 10, uploadTime: '2026-02-03T10:00:00Z' },
          ],
        },
      ],
    },
  ],
}
const lists = {
  ecosystem: 'python',
  packages: [
    { name: 'flask', versions: ['1.0', '2.0', '10.0'] },
    { name: 'one', versions: ['1'] },
  ],
}
const java = {
  ecosystem: 'java',
  packages: [
    {
      groupId: 'org.example',
      artifactId: 'lib',
      title: 'An example',
      versions: [
        { version: '1.0', size: 5, firstSeenTime: '2026-01-02T00:00:00Z' },
        { version: '1.0', size: 6, classifier: 'tests', firstSeenTime: '2026-01-01T00:00:00Z' },
        { version: '1.1-rc1', releaseTime: '2026-01-03T00:00:00Z' },
      ],
    },
  ],
}

function write(storage: TestStorage, name: string, content: object | string): string {
  const path = join(storage.data, name)
  const text = typeof content === 'string' ? content : JSON.stringify(content, null, 1)
  writeFileSync(path, name.endsWith('.gz') ? gzipSync(text) : text)
  return path
}

const importFrom = (storage: TestStorage, paths: string[], ...more: string[]) =>
  run(['libraries', 'import', ...storage.args, ...paths, ...more], { env: storage.env })

test('imports library files next to a running server, and the second time nothing changes', async () => {
  await using storage = await createStorage()
  const folder = join(storage.data, 'files')
  mkdirSync(folder)
  const names = { 'files/java.json': java, 'files/lists.json.gz': lists, 'files/python.json': python }
  for (const [name, content] of Object.entries(names)) write(storage, name, content)
  writeFileSync(join(folder, 'README.md'), 'not one of them')
  await using server = await startInProcess(storage)

  const first = await importFrom(storage, [folder])
  assert.deepEqual(
    [first.code, first.stdout.split('\n').at(-2)],
    [0, '3 libraries: 3 new, 0 changed, 0 unchanged, 6 new versions, 0 changed versions'],
  )
  assert.match(
    first.stdout,
    /java\.json: 1 packages, 3 versions\n.*lists\.json\.gz: 2 packages, 4 versions\n.*python\.json: 1 packages, 1 versions\n/,
  )
  const again = await importFrom(storage, [folder], '--output', 'json')
  const none = { created: 0, updated: 0, unchanged: 3, versionsCreated: 0, versionsUpdated: 0, refused: 0 }
  assert.deepEqual([again.code, JSON.parse(again.stdout)], [0, none])

  const client = clientOf(server.url, await tokenOf(storage))
  const versions = async (uid: string) =>
    (await client.get(`/libraries/v2/artifacts/${encodeURIComponent(uid)}/versions`)).body.artifactVersions
  const [ten, two] = await versions('python:flask')
  assert.equal(ten.version, '10.0')
  assert.deepEqual(two, {
    uid: 'python:flask@2.0',
    name: 'flask',
    version: '2.0',
    description: '',
    createTime: '2026-02-01T10:00:00.000Z',
    updateTime: '2026-02-03T10:00:00.000Z',
    sizeBytes: '110',
  })
  const [rc, release] = await versions('java:org.example:lib')
  assert.deepEqual([rc.version, rc.description, rc.createTime], ['1.1-rc1', 'An example', '2026-01-03T00:00:00.000Z'])
  assert.deepEqual([release.sizeBytes, release.createTime], ['11', '2026-01-01T00:00:00.000Z'])
})

test('imports real lists of Python versions in order, without a server', async () => {
  await using storage = await createStorage()
  const file = join(project, 'test/data/python-version-lists.json.gz')
  const { code, stdout } = await importFrom(storage, [file])
  assert.deepEqual(
    [code, stdout.split('\n').at(-2)],
    [0, '652 libraries: 652 new, 0 changed, 0 unchanged, 35302 new versions, 0 changed versions'],
  )
  assert.match(stdout, /652 packages, 35302 versions/)
})

test('an error for an invalid package names file, line and field, and no version of it is imported', async () => {
  await using storage = await createStorage()
  const [good] = lists.packages
  const file = write(storage, 'wrong.json', {
    ecosystem: 'python',
    packages: [
      good,
      { name: 'a', versions: ['1', { version: '2', files: [{ size: -1 }] }] },
      { name: 'b c', versions: ['1'] },
      { name: 'd', versions: ['1', '1 2'] },
      { name: 'e' },
      { versions: ['1'] },
      'f',
      { name: 'g', versions: [] },
      { name: 'h', versions: [{ version: '1', uploadTime: 'yesterday' }] },
      null,
    ],
  })
  const javaFile = write(storage, 'wrong-java.json', {
    ecosystem: 'java',
    packages: [
      { groupId: 'g', artifactId: 'a', title: 'two\nlines', versions: [{ version: '1' }] },
      { groupId: 'g:h', artifactId: 'a', versions: [{ version: '1' }] },
      { groupId: 'g', artifactId: 'b', versions: [{ version: '1' }, { version: '1' }, { version: '2 3' }] },
      { groupId: 'g', artifactId: 'c', versions: ['1'] },
    ],
  })
  const { code, stdout, stderr } = await importFrom(storage, [file, javaFile])
  assert.deepEqual(
    [code, stdout.split('\n').at(-2)],
    [1, '1 libraries: 1 new, 0 changed, 0 unchanged, 3 new versions, 0 changed versions; 13 problems, see above'],
  )
  const lines = stderr.split('\n').filter((line) => line.startsWith('pinfold: '))
  const expected = [
    `${file}:20: packages[1].versions[1].files[0].size: must be a whole number`,
    `${file}:39: packages[4].versions: must be a list`,
    `${file}:42: packages[5].name: must be a string that is not empty`,
    `${file}:47: packages[6]: must be an object`,
    `${file}:57: packages[8].versions[0].uploadTime: must be a time in the format of RFC 3339`,
    `${file}:61: packages[9]: must be an object`,
    `${javaFile}:42: packages[3].versions[0]: must be an object`,
    `${file}:27: name: must match "^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$"`,
    `${file}:36: versions[1].version: must be visible ASCII characters`,
    `${file}:50: versions: must have at least one version`,
    `${javaFile}:7: versions[0].description: must be one line of at most 512 characters`,
    `${javaFile}:15: name: must match "^[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+$"`,
    `${javaFile}:34: versions[1].version: must be visible ASCII characters`,
  ]
  assert.deepEqual(
    lines,
    expected.map((line) => `pinfold: ${line}`),
  )
})

test('names a file without libraries', async () => {
  await using storage = await createStorage()
  const cases: Record<string, [string, RegExp]> = {
    'broken.json': ['{\n "ecosystem": "python",\n oops }', /broken\.json:3: is not valid JSON/],
    'cut.json': ['{"ecosystem": "python"', /cut\.json:1: is not valid JSON/],
    'twice.json': ['{"ecosystem": "python", "ecosystem": "java", "packages": []}', /twice\.json:1: is not valid JSON/],
    'deep.json': ['['.repeat(100_000) + ']'.repeat(100_000), /deep\.json:1: is not valid JSON/],
    'list.json': ['[]', /list\.json:1: must be an object/],
    'rust.json': ['{"ecosystem": "rust", "packages": []}', /rust\.json:1: ecosystem: must be java or python/],
    'none.json': ['{"ecosystem": "python",\n "packages": {}}', /none\.json:2: packages: must be a list/],
  }
  const files = Object.entries(cases).map(([name, [text]]) => write(storage, name, text))
  const { code, stderr } = await importFrom(storage, files)
  assert.equal(code, 1)
  for (const [, expected] of Object.values(cases)) assert.match(stderr, expected)
  const missing = await importFrom(storage, [join(storage.data, 'nowhere.json')])
  assert.deepEqual([missing.code, /nowhere\.json/.test(missing.stderr)], [1, true])
})
