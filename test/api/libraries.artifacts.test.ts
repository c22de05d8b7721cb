import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { assertInvalid, assertNotFound } from '../support/expect.ts'
import { seedLibraries } from '../support/libraries.ts'
import { type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'

let pinfold: Pinfold
let operator: Client
let viewer: Client
let stranger: Client

const at = (day: number) => `2026-01-${String(day).padStart(2, '0')}T00:00:00.000Z`
const version = (name: string, day: number, more: Json = {}) => ({ version: name, releaseTime: at(day), ...more })

before(async () => {
  pinfold = await startPinfold()
  operator = pinfold.operator
  const group = (await pinfold.seed.group()).uid
  viewer = await pinfold.as((await pinfold.seed.member(group, roleUids.viewer)).uid)
  stranger = await pinfold.as((await pinfold.seed.identity(group)).uid)
  await seedLibraries(pinfold, 'python', {
    Flask: [
      version('1.0', 3, { description: 'the first' }),
      version('2.0.dev1', 9),
      version('2.0rc1', 8, { sizeBytes: '42' }),
    ],
    'zope.interface': [version('5.0', 1)],
    torch: [version('2.1.0+cu121', 5), version('2.1.0+cpu', 6)],
    'nvidia-cublas-cu12': [version('12.8.4', 2)],
    'torch-old': [version('0.4+cu92', 4)],
    patched: [version('1.0', 7, { remediated: true })],
    'patched-gpu': [version('1.0+cu121', 10), version('1.1+cu118', 11, { remediated: true })],
  })
  await seedLibraries(pinfold, 'java', {
    'com.google.guava:guava': [version('31.1-jre', 2), version('32.0.0-android', 3), version('9.0', 1)],
    'org.FLASK:torch_100': [version('1.0-SNAPSHOT', 12), version('1.0-rc1', 11)],
  })
})
after(() => pinfold[Symbol.asyncDispose]())

const list = (query: string, client = operator) => client.get(`/libraries/v2/artifacts?${query}`)
async function namesOf(query: string): Promise<string[]> {
  const { status, body, text } = await list(query)
  assert.equal(status, 200, text)
  assert.equal(body.totalCount, String(body.artifacts.length), query)
  return body.artifacts.map(({ name }: Json) => name)
}
const versionsOf = (uid: string, query = '') =>
  operator.get(`/libraries/v2/artifacts/${encodeURIComponent(uid)}/versions?${query}`)

test('a library has the data of its newest version, in the version order of its ecosystem', async () => {
  const { body } = await list('ecosystems=ECOSYSTEM_PYTHON&query=flask')
  assert.deepEqual(body.artifacts, [
    {
      uid: 'python:flask',
      name: 'flask',
      description: '',
      ecosystem: 'ECOSYSTEM_PYTHON',
      latestVersion: '2.0rc1',
      versionCount: 3,
      createTime: at(3),
      updateTime: at(8),
    },
  ])
  const [guava] = (await list('ecosystems=ECOSYSTEM_JAVA&query=guava')).body.artifacts
  assert.equal(guava.latestVersion, '32.0.0-android')
})

test('lists versions newest first, or oldest first on request', async () => {
  const { body } = await versionsOf('python:flask')
  assert.deepEqual(body, {
    artifactVersions: [
      {
        uid: 'python:flask@2.0rc1',
        name: 'flask',
        version: '2.0rc1',
        description: '',
        createTime: at(8),
        updateTime: at(8),
        sizeBytes: '42',
      },
      {
        uid: 'python:flask@2.0.dev1',
        name: 'flask',
        version: '2.0.dev1',
        description: '',
        createTime: at(9),
        updateTime: at(9),
        sizeBytes: '0',
      },
      {
        uid: 'python:flask@1.0',
        name: 'flask',
        version: '1.0',
        description: 'the first',
        createTime: at(3),
        updateTime: at(3),
        sizeBytes: '0',
      },
    ],
    nextPageToken: '',
    totalCount: '3',
    skipped: 0,
  })
  const ascending = (await versionsOf('java:com.google.guava:guava', 'order_by=version')).body.artifactVersions
  assert.deepEqual(
    ascending.map((one: Json) => one.version),
    ['9.0', '31.1-jre', '32.0.0-android'],
  )
  assertInvalid(await versionsOf('python:flask', 'order_by=create_time'), 'order_by')
  assertInvalid(await versionsOf('python:flask', 'page_size=-1'), 'page_size')
})

test('pages of versions continue each other, in both orders', async () => {
  const versions = ['not-a-version', '1.0.dev1', '1.0a1', '1.0', '1.0.0', '1.0.post1', '1.1+local.2', '1!0.1']
  await seedLibraries(pinfold, 'python', { paged: versions.toReversed() })
  for (const [order, expected] of [
    ['version', versions],
    ['version desc', versions.toReversed()],
  ] as const) {
    for (const size of [1, 3]) {
      const seen: string[] = []
      let token = ''
      do {
        const { body } = await versionsOf('python:paged', `order_by=${order}&page_size=${size}&page_token=${token}`)
        assert.equal(body.totalCount, '8')
        seen.push(...body.artifactVersions.map((one: Json) => one.version))
        token = body.nextPageToken
      } while (token !== '')
      assert.deepEqual(seen, expected)
    }
  }
  const skipped = (await versionsOf('python:paged', 'skip=6')).body
  assert.equal(skipped.skipped, 6)
  assert.deepEqual(
    skipped.artifactVersions.map((one: Json) => one.version),
    ['1.0.dev1', 'not-a-version'],
  )
})

test('returns no versions for a missing library', async () => {
  for (const uid of ['python:nothing', 'flask', 'java:Com.google.guava:guava', 'x'.repeat(3000)]) {
    assertNotFound(await versionsOf(uid), 'libraries.pinfold.dev/Artifact', uid)
  }
})

test('lists libraries of one or both ecosystems in each order, in pages', async () => {
  const both = (await list('ecosystems=1,2&page_size=200')).body.artifacts as Json[]
  const bytes = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
  for (const [order, key] of Object.entries({
    name: 'name',
    uid: 'uid',
    created_at: 'createTime',
    update_time: 'updateTime',
  })) {
    for (const ecosystems of ['1', '2', '1&ecosystems=2']) {
      for (const desc of [false, true]) {
        const expected = both
          .filter(({ ecosystem }) => ecosystems !== '1' || ecosystem === 'ECOSYSTEM_JAVA')
          .filter(({ ecosystem }) => ecosystems !== '2' || ecosystem === 'ECOSYSTEM_PYTHON')
          .sort((a, b) => bytes(a[key], b[key]) || bytes(a.uid, b.uid))
          .map(({ uid }) => uid)
        if (desc) expected.reverse()
        const seen: string[] = []
        let token = ''
        do {
          const { body, text } = await list(
            `ecosystems=${ecosystems}&order_by=${order}${desc ? ' desc' : ''}&page_size=2&page_token=${token}`,
          )
          assert.equal(body.totalCount, String(expected.length), text)
          seen.push(...body.artifacts.map(({ uid }: Json) => uid))
          token = body.nextPageToken
        } while (token !== '')
        assert.deepEqual(seen, expected, `${ecosystems} by ${order}`)
      }
    }
  }
  assertInvalid(await list('ecosystems=1&order_by=latest_version'), 'order_by')
})

test('refuses a page token of another search', async () => {
  const { nextPageToken } = (await list('ecosystems=1,2&page_size=1')).body
  const others = [
    'ecosystems=1',
    'ecosystems=1,2&query=a',
    'ecosystems=1,2&remediated=true',
    'ecosystems=1,2&cuda_version=12',
  ]
  for (const other of others) assertInvalid(await list(`${other}&page_token=${nextPageToken}`), 'page_token')
})

test('a search finds text anywhere in a name, ignoring case', async () => {
  for (const query of ['f', 'fl', 'FLA', 'flask', 'LASK', 'sk', 'k:', 'k:torch']) {
    const found = await namesOf(`ecosystems=1,2&query=${encodeURIComponent(query)}`)
    assert.ok(found.length > 0, query)
    for (const name of found) assert.ok(name.toLowerCase().includes(query.toLowerCase()), `${query}: ${name}`)
  }
  assert.deepEqual(await namesOf('ecosystems=1,2&query=flask'), ['flask', 'org.FLASK:torch_100'])
  assert.deepEqual(await namesOf('ecosystems=2&query=torch'), ['torch', 'torch-old'])
  assert.deepEqual(await namesOf('ecosystems=1&query=%25'), [])
  assert.deepEqual(await namesOf('ecosystems=1&query=h_1'), ['org.FLASK:torch_100'])
  assert.deepEqual(await namesOf('ecosystems=1&query=g_a'), [])
  for (const query of ['xyz', 'x', 'flaskk', '%00x', '%5C', '%E2%82%AC', '%F0%9F%98%80', "';--", 'a'.repeat(300)]) {
    const answer = await list(`ecosystems=1,2&query=${query}`)
    if (query === '%00x') assertInvalid(answer, 'query')
    else assert.deepEqual([answer.status, answer.body.artifacts, answer.body.totalCount], [200, [], '0'], query)
  }
  assert.equal((await list('ecosystems=1,2&query=%20')).body.totalCount, (await list('ecosystems=1,2')).body.totalCount)
})

test('finds a Python package by each equivalent spelling of its name', async () => {
  for (const query of ['zope.interface', 'Zope_Interface', 'zope-interface', 'e._-i']) {
    assert.deepEqual(await namesOf(`ecosystems=2&query=${query}`), ['zope-interface'])
  }
})

test('search results can be listed in each order', async () => {
  const { body } = await list('ecosystems=1,2&query=torch&order_by=update_time desc&page_size=2')
  assert.deepEqual(
    body.artifacts.map(({ name }: Json) => name),
    ['org.FLASK:torch_100', 'torch'],
  )
  const more = await list(
    `ecosystems=1,2&query=torch&order_by=update_time desc&page_size=2&page_token=${body.nextPageToken}`,
  )
  assert.deepEqual(
    more.body.artifacts.map(({ name }: Json) => name),
    ['torch-old'],
  )
  assert.deepEqual([body.totalCount, more.body.totalCount], ['3', '3'])
})

test('a search for a CUDA version finds the builds for it, and only in Python', async () => {
  for (const [cuda, names] of Object.entries({
    '12': ['nvidia-cublas-cu12', 'patched-gpu', 'torch'],
    cu12: ['nvidia-cublas-cu12', 'patched-gpu', 'torch'],
    '12.1': ['patched-gpu', 'torch'],
    CU121: ['patched-gpu', 'torch'],
    '9.2': ['torch-old'],
    '9': ['torch-old'],
    '11.8': ['patched-gpu'],
    '12.2': [],
  })) {
    assert.deepEqual(await namesOf(`ecosystems=1,2&cuda_version=${cuda}`), names, cuda)
    assert.deepEqual(await namesOf(`ecosystems=1&cuda_version=${cuda}`), [], cuda)
  }
  assert.deepEqual(await namesOf('ecosystems=2&cuda_version=12&query=tor'), ['torch'])
  assert.deepEqual(await namesOf('ecosystems=2&cuda_version=12&query=torch'), ['torch'])
  for (const cuda of ['twelve', '12.', '1.2.3', 'cu1', 'cu12345', '-1']) {
    assertInvalid(await list(`ecosystems=2&cuda_version=${cuda}`), 'cuda_version')
  }
})

test('finds builds with remedied vulnerabilities; with a CUDA version, only builds for this version', async () => {
  assert.deepEqual(await namesOf('ecosystems=1,2&remediated=true'), ['patched', 'patched-gpu'])
  assert.deepEqual(await namesOf('ecosystems=2&remediated=true&query=gp'), ['patched-gpu'])
  assert.deepEqual(await namesOf('ecosystems=2&remediated=true&cuda_version=11.8'), ['patched-gpu'])
  assert.deepEqual(await namesOf('ecosystems=2&remediated=true&cuda_version=12.1'), [])
})

test('counts libraries by ecosystem', async () => {
  const total = async (ecosystems: string) =>
    (await operator.get(`/libraries/v2/artifacts/count?ecosystems=${ecosystems}`)).body.counts
  const python = (await list('ecosystems=2')).body.totalCount
  assert.deepEqual(await total('ECOSYSTEM_JAVA'), [{ ecosystem: 'ECOSYSTEM_JAVA', totalCount: '2' }])
  assert.deepEqual(await total('2,1,2'), [
    { ecosystem: 'ECOSYSTEM_PYTHON', totalCount: python },
    { ecosystem: 'ECOSYSTEM_JAVA', totalCount: '2' },
  ])
})

test('requires a known ecosystem', async () => {
  for (const path of ['/libraries/v2/artifacts', '/libraries/v2/artifacts/count']) {
    for (const query of [
      '',
      '?ecosystems=',
      '?ecosystems=ECOSYSTEM_UNSPECIFIED',
      '?ecosystems=ECOSYSTEM_RUST',
      '?ecosystems=1,7',
    ]) {
      assertInvalid(await operator.get(path + query), 'ecosystems')
    }
  }
})

test('callers with the capability on any group see all libraries, and others see none', async () => {
  const paths = {
    list: '/libraries/v2/artifacts?ecosystems=2',
    count: '/libraries/v2/artifacts/count?ecosystems=2',
    versions: '/libraries/v2/artifacts/python%3Aflask/versions',
  }
  for (const path of Object.values(paths)) {
    const seen = await viewer.get(path)
    assert.deepEqual([seen.status, seen.body], [200, (await operator.get(path)).body])
    assert.equal((await pinfold.anonymous.get(path)).status, 401)
  }
  const none = { artifacts: [], nextPageToken: '', totalCount: '0', skipped: 0 }
  assert.deepEqual((await stranger.get(paths.list)).body, none)
  assert.deepEqual((await stranger.get(paths.count)).body.counts, [{ ecosystem: 'ECOSYSTEM_PYTHON', totalCount: '0' }])
  assertNotFound(await stranger.get(paths.versions), 'libraries.pinfold.dev/Artifact', 'python:flask')
})

test('a search returns the same results whether few, many or most names match', async () => {
  await using other = await startPinfold()
  const names = Array.from({ length: 2100 }, (_, i) => {
    return `lib-${i % 3 === 0 ? 'core' : 'more'}-${String(i).padStart(4, '0')}`
  })
  for (const part of [names.slice(0, 1000), names.slice(1000, 2000), names.slice(2000)]) {
    await seedLibraries(
      other,
      'python',
      Object.fromEntries(part.map((name, i) => [name, [version('1.0', 1 + (i % 28))]])),
    )
  }
  const few = ['0001', '2099', 'ecor', 'lib-more-06', 'e-00']
  for (const query of ['l', 'ib', 'lib', 'lib-', 'core', '-0', '9', 're-1', ...few]) {
    const expected = names.filter((name) => name.includes(query)).sort()
    for (const order of ['name', 'created_at desc']) {
      const path = `/libraries/v2/artifacts?ecosystems=2&query=${query}&page_size=200&order_by=${order}`
      const seen: string[] = []
      let token = ''
      do {
        const { body } = await other.operator.get(`${path}&page_token=${token}`)
        assert.equal(body.totalCount, String(expected.length), query)
        seen.push(...body.artifacts.map(({ name }: Json) => name))
        token = body.nextPageToken
      } while (token !== '' && order === 'name')
      if (order === 'name') assert.deepEqual(seen, expected, query)
      else for (const name of seen) assert.ok(name.includes(query), `${query}: ${name}`)
    }
  }
})
