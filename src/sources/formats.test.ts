import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTrackerPackage } from './debian-tracker.ts'
import { membersOf } from './json-members.ts'
import { readOsv } from './osv.ts'
import { readEpss, readKev } from './ranks.ts'
import { readSecdb } from './secdb.ts'
import { levelOf, scoreOf } from './severities.ts'

const osv = (more: object) => readOsv(JSON.stringify({ id: 'X-1', ...more }))
const ranges = [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '1.2' }] }]
const inPackage = (ecosystem: string, name: string, more: object = { ranges }) => ({
  affected: [{ package: { ecosystem, name }, ...more }],
})
const wrong = (message: RegExp) => ({ name: 'WrongRecord', message })

test('reads a Bitnami record with its scores, its fix and its best references first', () => {
  const record = osv({
    id: 'BIT-airflow-2024-25142',
    summary: 'Apache Airflow: Cache Control ',
    aliases: ['CVE-2024-25142'],
    published: '2024-06-18T07:17:29.631Z',
    modified: '2025-05-20T10:02:07.006Z',
    ...inPackage('Bitnami', 'airflow', {
      severity: [{ type: 'CVSS_V3', score: 'CVSS:3.1/AV:L/AC:L/PR:L/UI:N/S:U/C:H/I:N/A:N' }],
      ranges: [{ type: 'SEMVER', events: [{ introduced: '0' }, { fixed: '2.9.2' }] }],
    }),
    database_specific: { severity: 'Medium' },
    references: [
      { type: 'WEB', url: 'https://example.com/web' },
      { type: 'ADVISORY', url: 'https://example.com/advisory' },
      { type: 'WEB', url: 'javascript:alert(1)' },
    ],
  })
  assert.deepEqual(record, {
    id: 'BIT-airflow-2024-25142',
    aliases: ['CVE-2024-25142'],
    upstream: [],
    summary: 'Apache Airflow: Cache Control',
    publishTime: '2024-06-18T07:17:29.631Z',
    modifyTime: '2025-05-20T10:02:07.006Z',
    withdrawTime: '',
    severities: [{ source: '', type: 'CVSS_V3', vector: 'CVSS:3.1/AV:L/AC:L/PR:L/UI:N/S:U/C:H/I:N/A:N', score: 5.5 }],
    references: ['https://example.com/advisory', 'https://example.com/web'],
    affected: [
      {
        ecosystem: 'Bitnami',
        name: 'airflow',
        ranges: [{ type: 'SEMVER', events: [{ introduced: '0' }, { fixed: '2.9.2' }] }],
        versions: [],
        state: 'affected',
        severity: 'medium',
        qualifiers: {},
      },
    ],
  })
})

test('reads single versions only without a covering range, and never commits', () => {
  const events = [{ introduced: '1.0' }, { fixed: '2.0' }]
  const affected = { ranges: [{ type: 'ECOSYSTEM', events }], versions: ['1.0', '1.0rc1', '1.5', 'r2010'] }
  const [both] = osv(inPackage('PyPI', 'Django_X', affected)).affected
  assert.deepEqual([both?.name, both?.ranges.length, both?.versions], ['django-x', 1, ['1.0rc1', 'r2010']])
  for (const ecosystem of ['Debian:12', 'Alpine:v3.19', 'Bitnami']) {
    assert.deepEqual(osv(inPackage(ecosystem, 'a', affected)).affected[0]?.versions, [], ecosystem)
  }
  const git = [{ type: 'GIT', repo: 'https://example.com', events: [{ introduced: '0' }] }]
  const [listed] = osv(inPackage('npm', 'A_b', { ranges: git, versions: ['1.0', '1.1'] })).affected
  assert.deepEqual([listed?.name, listed?.ranges, listed?.versions], ['A_b', [], ['1.0', '1.1']])
  assert.deepEqual(osv(inPackage('npm', 'a', { ranges: git })).affected, [])
  assert.deepEqual(osv(inPackage('npm', 'a', {})).affected, [])
  assert.deepEqual(osv({ affected: [{ ranges: git }] }).affected, [])
})

test('reads each kind of event, and ignores the limit `*`', () => {
  const events = [{ introduced: '1' }, { last_affected: '2' }, { limit: '*' }, { limit: '3' }, { fixed: '4' }]
  const [one] = osv(inPackage('Go', 'a', { ranges: [{ type: 'SEMVER', events }] })).affected
  assert.deepEqual(one?.ranges[0]?.events, [{ introduced: '1' }, { lastAffected: '2' }, { limit: '3' }, { fixed: '4' }])
})

test('reads withdrawn, upstream, and the severity and urgency of distributions', () => {
  assert.equal(osv({ withdrawn: '2024-01-02T03:04:05Z' }).withdrawTime, '2024-01-02T03:04:05.000Z')
  assert.equal(osv({ modified: '0001-01-01T00:00:00Z' }).modifyTime, '')
  assert.deepEqual(osv({ upstream: ['CVE-2024-1'] }).upstream, ['CVE-2024-1'])
  const cga = { id: 'CGA-37qj-pjrf-fmrw', related: ['CGA-37qj-pjrf-fmrw', 'CVE-2020-8927'] }
  assert.deepEqual(osv(cga).upstream, ['CVE-2020-8927'])
  assert.deepEqual(osv({ related: ['CVE-2020-8927'] }).upstream, [])
  const cases: [object, object, string, string, string][] = [
    [{ severity: [{ type: 'Ubuntu', score: 'medium' }] }, {}, 'medium', 'affected', ''],
    [{}, { ecosystem_specific: { urgency: 'unimportant' } }, 'negligible', 'affected', 'unimportant'],
    [{}, { ecosystem_specific: { urgency: 'end-of-life' } }, '', 'wont_fix', 'end-of-life'],
    [{ database_specific: { severity: 'MODERATE' } }, {}, 'medium', 'affected', ''],
    [{ database_specific: { severity: 'LOW' } }, { ecosystem_specific: { severity: 'high' } }, 'high', 'affected', ''],
    [{ database_specific: { severity: 9 } }, {}, '', 'affected', ''],
  ]
  for (const [record, affected, severity, state, urgency] of cases) {
    const [one] = osv({ ...record, ...inPackage('Debian:12', 'a', { ranges, ...affected }) }).affected
    assert.deepEqual([one?.severity, one?.state, one?.qualifiers.urgency ?? ''], [severity, state, urgency])
  }
})

test('refuses an invalid record, and names the invalid member', () => {
  const cases: [string, RegExp][] = [
    ['{', /^the document is not valid JSON$/],
    ['[]', /^record must be an object$/],
    ['{}', /^id is required$/],
    ['{"id":1}', /^id must be a string$/],
    ['{"id":"a","aliases":[1]}', /^aliases\[0\] must be a string$/],
    ['{"id":"a","published":"soon"}', /^published must be a valid time$/],
    ['{"id":"a","affected":{}}', /^affected must be a list$/],
    ['{"id":"a","affected":[{"package":{"name":"a"}}]}', /^affected\[0\]\.package\.ecosystem is required$/],
    [
      '{"id":"a","affected":[{"package":{"name":"a","ecosystem":"b"},"ranges":[1]}]}',
      /^affected\[0\]\.ranges\[0\] must/,
    ],
  ]
  for (const [text, message] of cases) assert.throws(() => readOsv(text), wrong(message), text)
  assert.deepEqual(readOsv('{"id":"a","affected":null,"aliases":null}').affected, [])
  assert.equal(osv({ details: `${'x'.repeat(2000)}\nmore` }).summary.length, 1000)
})

test('reads secdb fixes, packages that were never vulnerable, and entries with several ids', () => {
  const database = (secfixes: object) => JSON.stringify({ packages: [{ pkg: { name: 'openssl', secfixes } }] })
  const read = (secfixes: object) => readSecdb(database(secfixes), 'Alpine:v3.19')
  const [fixed] = read({ '3.0.8-r0': ['CVE-2022-4203'] })
  assert.deepEqual(fixed?.affected, [
    {
      ecosystem: 'Alpine:v3.19',
      name: 'openssl',
      ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '3.0.8-r0' }] }],
      versions: [],
      state: 'affected',
      severity: '',
      qualifiers: {},
    },
  ])
  for (const version of ['0', '0-r0']) {
    const [never] = read({ [version]: ['CVE-2023-0466'] })
    assert.deepEqual(
      [never?.affected[0]?.state, never?.affected[0]?.ranges[0]?.events],
      ['not_affected', [{ introduced: '0' }]],
    )
  }
  const ids = (entry: string) => read({ '1-r0': [entry] }).map(({ id, aliases }) => [id, ...aliases])
  assert.deepEqual(ids('CVE-2017-15595 XSA-244'), [['CVE-2017-15595', 'XSA-244']])
  assert.deepEqual(ids('CVE-2020-1 CVE-2020-2 (+)'), [['CVE-2020-1'], ['CVE-2020-2']])
  assert.deepEqual(ids('GHSA-232p-vwff-86mp'), [['GHSA-232p-vwff-86mp']])
  assert.deepEqual(ids('see notes'), [])
  const twice = read({ '1-r0': ['CVE-1-1'], '2-r0': ['CVE-1-1'] })
  assert.deepEqual([twice.length, twice[0]?.affected.length], [1, 2])
  assert.throws(() => readSecdb('{}', 'Wolfi'), wrong(/^packages must be a list$/))
  assert.throws(() => readSecdb('{"packages":[{"pkg":{}}]}', 'Wolfi'), wrong(/^packages\[0\]\.pkg\.name is required$/))
})

test("Debian's tracker: open, resolved, never vulnerable, ignored, unimportant, end of life", () => {
  const states: [object, unknown[]][] = [
    [{ status: 'open', urgency: 'not yet assigned' }, ['affected', '', '', undefined]],
    [{ status: 'resolved', fixed_version: '3.0.11-1', urgency: 'high**' }, ['affected', 'high', 'high**', '3.0.11-1']],
    [{ status: 'resolved', fixed_version: '0', urgency: 'not yet assigned' }, ['not_affected', '', '', undefined]],
    [{ status: 'open', urgency: 'unimportant' }, ['affected', 'negligible', 'unimportant', undefined]],
    [{ status: 'open', urgency: 'end-of-life' }, ['wont_fix', '', 'end-of-life', undefined]],
    [
      { status: 'open', nodsa: 'minor', nodsa_reason: 'ignored', urgency: 'low' },
      ['wont_fix', 'low', 'low', undefined],
    ],
    [{ status: 'open', nodsa_reason: 'postponed', urgency: 'low' }, ['affected', 'low', 'low', undefined]],
    [{ status: 'undetermined', urgency: 'medium' }, ['affected', 'medium', 'undetermined', undefined]],
  ]
  for (const [bookworm, expected] of states) {
    const text = JSON.stringify({ 'CVE-2024-1': { description: 'bad', releases: { bookworm, sid: bookworm } } })
    const [record, ...more] = readTrackerPackage('openssl', text)
    assert.deepEqual(more, [])
    assert.deepEqual([record?.id, record?.upstream, record?.summary], ['CVE-2024-1/openssl', ['CVE-2024-1'], 'bad'])
    assert.equal(record?.affected.length, 1)
    const [one] = record!.affected
    const fixed = one?.ranges[0]?.events.flatMap((event) => ('fixed' in event ? [event.fixed] : []))[0]
    assert.deepEqual([one?.state, one?.severity, one?.qualifiers.urgency ?? '', fixed], expected)
    assert.equal(one?.ecosystem, 'Debian:12')
  }
  assert.throws(() => readTrackerPackage('a', '[]'), wrong(/^a must be an object$/))
})

test('splits a document into members, wherever its chunks end', async () => {
  const text = '{ "a": {"x": [1, {"y": "}\\"]"}]}, "b,\\"" : [], "c": "{", "é": 1.5 }'
  for (const size of [1, 2, 3, 7, 1000]) {
    const bytes = Buffer.from(text)
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    )
    const found: [string, unknown][] = []
    for await (const [name, value] of membersOf(streamOf(chunks))) found.push([name, JSON.parse(value)])
    assert.deepEqual(found, Object.entries(JSON.parse(text)), String(size))
  }
  assert.deepEqual(await Array.fromAsync(membersOf(streamOf([Buffer.from('{}')]))), [])
  for (const broken of ['', '[1]', '{"a":1', '{1:2}', '{"a":1,', '{"a"}', '{"a":1}{']) {
    await assert.rejects(Array.fromAsync(membersOf(streamOf([Buffer.from(broken)]))), { name: 'WrongRecord' }, broken)
  }
  const endless = (async function* () {
    yield Buffer.from('{"a":"')
    for (;;) yield Buffer.alloc(1024 * 1024, 'x')
  })()
  await assert.rejects(Array.fromAsync(membersOf(endless)), wrong(/^a member has more than/))
})

async function* streamOf(chunks: readonly Buffer[]) {
  yield* chunks
}

test('reads KEV and EPSS, and refuses an invalid rank', async () => {
  const entry = {
    cveID: 'CVE-2021-44228',
    dateAdded: '2021-12-10',
    dueDate: '2021-12-24',
    knownRansomwareCampaignUse: 'Known',
  }
  assert.deepEqual(readKev(JSON.stringify({ vulnerabilities: [entry] })), [
    { cve: 'CVE-2021-44228', exploited: { addDate: '2021-12-10', dueDate: '2021-12-24', ransomware: true } },
  ])
  assert.throws(() => readKev('{}'), wrong(/^vulnerabilities must be a list$/))
  assert.throws(() => readKev('{"vulnerabilities":[{"cveID":"x"}]}'), wrong(/must be a CVE ID$/))
  const epss = (text: string) => Array.fromAsync(readEpss(streamOf([Buffer.from(text)])))
  const header = '#model_version:v2025.03.14,score_date:2026-11-20T12:00:00Z\ncve,epss,percentile\n'
  assert.deepEqual(await epss(`${header}CVE-2021-44228,0.94358,0.99967\r\n`), [
    { cve: 'CVE-2021-44228', likelihood: { epss: 0.94358, percentile: 0.99967 } },
  ])
  await assert.rejects(epss(`${header}CVE-2021-44228,1.1,0.5\n`), wrong(/^line 3 is not a valid score$/))
  await assert.rejects(epss(`${header}CVE-2021-44228,,0.5\n`), wrong(/^line 3 is not a valid score$/))
  await assert.rejects(epss('<html>\n'), wrong(/^line 1 must be the header cve,epss,percentile$/))
  await assert.rejects(epss(''), wrong(/^the header cve,epss,percentile is missing$/))
})

test('returns the score of CVSS vectors of each version, and none for other text', () => {
  const cases: ['CVSS_V2' | 'CVSS_V3' | 'CVSS_V4', string, number | undefined][] = [
    ['CVSS_V2', 'AV:N/AC:L/Au:N/C:P/I:P/A:P', 7.5],
    ['CVSS_V3', 'CVSS:3.0/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H', 9.8],
    ['CVSS_V3', 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H', 10],
    ['CVSS_V3', 'CVSS:3.1/AV:L/AC:L/PR:L/UI:N/S:U/C:N/I:N/A:N', 0],
    ['CVSS_V4', 'CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N', 9.3],
    ['CVSS_V4', 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H', undefined],
    ['CVSS_V3', '9.8', undefined],
    ['CVSS_V3', `CVSS:3.1/${'AV:N/'.repeat(1000)}`, undefined],
    ['CVSS_V3', 'CVSS:3.1/nonsense', undefined],
  ]
  for (const [type, vector, score] of cases) assert.equal(scoreOf(type, vector), score, vector.slice(0, 80))
  const words = ['Medium', 'MODERATE', 'important', 'high**', 'unimportant', 'not yet assigned', 3, 'constructor']
  assert.deepEqual(words.map(levelOf), ['medium', 'medium', 'high', 'high', 'negligible', '', '', ''])
})

test('assigns a fix for an rpm module to the stream in the record', () => {
  const streamOf = (summary: string, fixed: string, purl = '', ecosystem = 'AlmaLinux:8') => {
    const found = [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }]
    const affected = [{ package: { ecosystem, name: 'nodejs', purl }, ranges: found }]
    return osv({ summary, affected }).affected[0]!.qualifiers.stream
  }
  const fixed = '1:18.16.1-1.module_el8.8.0+3613+1ed8c91d'
  assert.equal(streamOf('Important: nodejs:18 security, bug fix, and enhancement update', fixed), 'nodejs:18')
  assert.equal(
    streamOf('Red Hat Security Advisory: container-tools:rhel8 security update', fixed),
    'container-tools:rhel8',
  )
  assert.equal(streamOf('Moderate: idm:DL1 and idm:client security update', fixed), 'idm:DL1 idm:client')
  assert.equal(streamOf('Low: python38:3.8, python38-devel:3.8', fixed), 'python38:3.8 python38-devel:3.8')
  assert.equal(streamOf(`Low:${' a:1 b:1'.repeat(50)}`, fixed), 'a:1 b:1')
  assert.equal(streamOf(`Low: ${Array.from({ length: 50 }, (_, i) => `a:${i}`).join(' ')}`, fixed), '')
  assert.equal(streamOf('Important: node security update', fixed), '')
  const purl = 'pkg:rpm/almalinux/nodejs?rpmmod=nodejs%3A20%3A8090020'
  assert.equal(streamOf('nothing', fixed, purl), 'nodejs:20')
  assert.equal(streamOf('Important: nodejs:18 security update', '1:18.16.1-1.el9'), undefined)
  assert.equal(streamOf('Important: nodejs:18 security update', fixed, '', 'Debian:12'), undefined)
})

test('removes a repository from an ecosystem name, and keeps a release in it', () => {
  const ecosystemOf = (ecosystem: string) => osv(inPackage(ecosystem, 'a:b')).affected[0]?.ecosystem
  assert.equal(ecosystemOf('Maven:https://repository.example/maven2'), 'Maven')
  assert.equal(ecosystemOf('PyPI:http://index.example'), 'PyPI')
  assert.equal(ecosystemOf('Debian:12'), 'Debian:12')
})

test('finds a record about a Go module by its exact name and in lower case', () => {
  const named = (name: string) => osv(inPackage('Go', name)).affected.map((one) => one.name)
  const [name, lower] = ['github.com/Masterminds/goutils', 'github.com/masterminds/goutils']
  assert.deepEqual(named(name), [name, lower])
  assert.deepEqual(named(lower), [lower])
  assert.deepEqual(
    osv(inPackage('npm', 'JSONStream')).affected.map((one) => one.name),
    ['JSONStream'],
  )
})

const [zero, fix] = [{ introduced: '0' }, { fixed: '2.0.0' }]
for (const [known, events, end] of [
  ['<= 29.0', [zero], { lastAffected: '29.0' }],
  ['>= 1.0, <= 29.0', [zero], { lastAffected: '29.0' }],
  ['< 15.5.1', [{ introduced: '15.5.1-canary.0' }], { limit: '15.5.1' }],
  ['= 1.2.3', [zero], undefined],
  ['<= 1.9.9', [zero, fix], undefined],
  ['unknown', [zero], undefined],
  [7, [zero], undefined],
] as const) {
  test(`the last known range ${known} of GitHub with ${JSON.stringify(events)} ends at ${JSON.stringify(end)}`, () => {
    const more = {
      ranges: [{ type: 'ECOSYSTEM', events }],
      database_specific: { last_known_affected_version_range: known },
    }
    const [affected] = osv(inPackage('Maven', 'com.google.guava:guava', more)).affected
    assert.deepEqual(affected?.ranges[0]?.events, [...events, ...(end ? [end] : [])])
  })
}
