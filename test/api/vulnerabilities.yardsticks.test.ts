// Findings of other scanners in real images: with the same data, our scan finds the same with the same fixed versions.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { parse } from 'yaml'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import type { SourceRecord } from '#domains/scanning/records/records.service.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { compareVersions, type Scheme } from '#versions/order.ts'
import type { RangeEvent } from '#versions/ranges.ts'
import { readAdvisories } from '../../src/cli/imports/advisory-yaml.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { fixture } from '../support/fixtures.ts'
import { pushLayers, pushSbom } from '../support/images.ts'
import type { LayerEntries } from '../support/layers.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

let registry: TestRegistry
let repo: string
let owner: string
before(async () => {
  registry = await startRegistry({ advisoryEcosystems: ['Wolfi'] })
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  owner = (await registry.seed.member(registry.org.uid, roleUids.owner)).uid
})
after(() => registry[Symbol.asyncDispose]())

async function findingsOf(digest: string): Promise<Json[]> {
  const viewer = await registry.as(owner)
  return ok(await viewer.get(`/registry/v2/repos/${repo}/digests/${digest}/findings`)).findings
}
const purlOf = (text: string): string => text.split('?')[0]!.toLowerCase()

type Bucket = { bucket: string; pairs: { bucket: string; pairs: { key: string; value: Advisory }[] }[] }
type Advisory = { FixedVersion?: string; Status?: number; PatchedVersions?: string[]; VulnerableVersions?: string[] }

/** The version order of the ecosystem, and its name in OSV. */
const languages: Record<string, { ecosystem: string; scheme: Scheme }> = {
  go: { ecosystem: 'Go', scheme: 'semver' },
  maven: { ecosystem: 'Maven', scheme: 'maven' },
  npm: { ecosystem: 'npm', scheme: 'semver' },
  pip: { ecosystem: 'PyPI', scheme: 'pep440' },
  rubygems: { ecosystem: 'RubyGems', scheme: 'gem' },
  cargo: { ecosystem: 'crates.io', scheme: 'semver' },
}

const ofDistribution = (name: string): string =>
  name
    .replace(/^alpine (\d.*)$/, 'Alpine:v$1')
    .replace('alpine edge', 'Alpine:edge')
    .replace(/^debian (\d+)$/, 'Debian:$1')
    .replace(/^ubuntu (\d.*)$/, 'Ubuntu:$1:LTS')

const endOfLife = 7

/** Data of the other scanner as records of a source, by ecosystem. */
function recordsOf(file: string): Map<string, SourceRecord[]> {
  const byEcosystem = new Map<string, SourceRecord[]>()
  for (const { bucket, pairs } of parse(fixture(`vulnerabilities/trivy-db/${file}.yaml`).toString()) as Bucket[]) {
    const language = languages[bucket.split('::')[0]!]
    const ecosystem = language?.ecosystem ?? ofDistribution(bucket)
    const records = byEcosystem.get(ecosystem) ?? []
    byEcosystem.set(ecosystem, records)
    for (const { bucket: name, pairs: advisories } of pairs) {
      for (const { key, value } of advisories) {
        const one = recordAbout(`${key}/${name}`, ecosystem, name, value.FixedVersion ?? '', { upstream: [key] })
        const [said] = one.affected
        if (language) said!.ranges = [{ type: 'ECOSYSTEM', events: eventsOf(value, language.scheme) }]
        if (value.Status === endOfLife) said!.state = 'wont_fix'
        records.push(one)
      }
    }
  }
  return byEcosystem
}

/** Converts `>= 1, < 2`, `[1,2)` and fixed versions to OSV events. */
function eventsOf({ VulnerableVersions: vulnerable, PatchedVersions: patched = [] }: Advisory, scheme: Scheme) {
  const plain = (version: string) => version.trim().replace(/^v/, '')
  if (!vulnerable) {
    // If `>= 2.1.3, < 3.0.0` is fixed, versions before and after this range are affected.
    const bounds = patched.map((text) => [...text.matchAll(/(?:>=|<)\s*([^,\s]+)/g)].map(([, one]) => one!))
    return [
      { introduced: '0' },
      ...bounds.flatMap(([from, to]): RangeEvent[] => [{ fixed: from! }, ...(to ? [{ introduced: to }] : [])]),
    ]
  }
  return vulnerable.flatMap((text): RangeEvent[] => {
    const [, from, below] = /^\[(.+),(.+)\)$/.exec(text) ?? []
    if (below !== undefined) return [{ introduced: from! }, { fixed: below }]
    const bound = (sign: string) => new RegExp(`(?:^|[\\s,])${sign}\\s*([^\\s,=<>]+)`).exec(text)?.[1]
    const [least, last, end] = [bound('>='), bound('<='), bound('<')]
    const fixed =
      end ?? patched.map(plain).find((one) => last !== undefined && compareVersions(scheme, one, plain(last))! > 0)
    const events: RangeEvent[] = [{ introduced: least === undefined ? '0' : plain(least) }]
    return fixed === undefined ? events : [...events, { fixed: plain(fixed) }]
  })
}

/** Source packages that the binary packages were built from, which the reports leave out. */
const origins: Record<string, string> = {
  'libcrypto1.1': 'openssl',
  'libssl1.1': 'openssl',
  'musl-utils': 'musl',
  'libidn2-0': 'libidn2',
  e2fslibs: 'e2fsprogs',
  libcomerr2: 'e2fsprogs',
  'libcom-err2': 'e2fsprogs',
  libext2fs2: 'e2fsprogs',
  libss2: 'e2fsprogs',
}

type Report = {
  report: string
  type: string
  os?: string
  findings: [id: string, purl: string, fixed: string, status: string][]
}

const partsOf = (purl: string) => {
  const [, path = '', version = ''] = /^pkg:[^/]+\/(.+)@([^?]+)/.exec(purl) ?? []
  return { name: path.split('/').at(-1)!, version: decodeURIComponent(version) }
}

/** Pushes an image with the named packages. */
function layerOf({ report, type, os, findings }: Report): LayerEntries {
  const packages = new Map(findings.map(([, purl]) => [purl, partsOf(purl)]))
  const written = [...packages.values()].map(({ name, version }) => {
    const origin = origins[name] ?? name
    return type === 'alpine'
      ? `P:${name}\nV:${version}\nA:x86_64\no:${origin}\n`
      : `Package: ${name}\nStatus: install ok installed\nArchitecture: amd64\nSource: ${origin}\nVersion: ${version}\n`
  })
  return {
    'etc/os-release': `ID=${type}\nVERSION_ID=${os}\n`,
    [type === 'alpine' ? 'lib/apk/db/installed' : 'var/lib/dpkg/status']: written.join('\n'),
    // The only image built from a branch before its release.
    ...(report === 'alpine-distroless'
      ? { 'etc/apk/repositories': 'https://dl-cdn.alpinelinux.org/alpine/edge/main\n' }
      : {}),
  }
}

async function pushReport(one: Report, tag: string): Promise<string> {
  if (one.os !== undefined) return pushAndScan(registry, 'acme/app', layerOf(one), tag)
  const pusher = await registry.registryAs(registry.pusher.uid)
  const image = await pushLayers(pusher, 'acme/app', [{ 'etc/motd': tag }], tag)
  const purls = [...new Set(one.findings.map(([, purl]) => purl))]
  const components = purls.map((purl) => ({ type: 'library', ...partsOf(purl), purl }))
  const document = JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6', components })
  await pushSbom(pusher, 'acme/app', image, document, 'application/vnd.cyclonedx+json')
  await runJob(registry.app, readImages)
  await runJob(registry.app, matchPackages)
  return image.digest
}

/** If a finding has several fixed versions, the other scanner lists those of all branches, sometimes with ranges. */
const fixesIn = (text: string): string[] =>
  [...text.matchAll(/[^\s,<>=]+/g)].map(([version]) => version.replace(/^v/, ''))

test('finds exactly what another scanner found in apk, deb and language packages with the same data', async () => {
  for (const file of ['alpine', 'debian', 'ubuntu', 'go', 'java', 'nodejs', 'python', 'ruby', 'rust']) {
    for (const [ecosystem, records] of recordsOf(file)) await readSource(registry.app, ecosystem, records)
  }
  const reports = JSON.parse(fixture('vulnerabilities/trivy-findings.json').toString()) as Report[]
  let [distributions, ofLanguages] = [0, 0]
  for (const [i, one] of reports.entries()) {
    const found = await findingsOf(await pushReport(one, `report-${i}`))
    const told = found.map((finding) => `${finding.vulnerabilities} ${purlOf(finding.purl)}`)
    const wanted = one.findings.map(([id, purl]) => `${id} ${purlOf(purl)}`)
    // The other scanner has a separate report for high and critical findings of an image.
    assert.deepEqual(told.sort(), wanted.sort(), one.report)
    for (const [id, purl, fixed] of one.findings) {
      const same = found.find((finding) => finding.vulnerabilities[0] === id && purlOf(finding.purl) === purlOf(purl))!
      const theirs = fixesIn(fixed)
      const ours: string[] = same.fixedVersions ?? []
      if (theirs.length > 1) assert.ok(ours.length > 0 && ours.every((version) => theirs.includes(version)), id)
      else assert.deepEqual(ours, theirs, `${one.report} ${id}`)
    }
    if (one.os === undefined) ofLanguages += wanted.length
    else distributions += wanted.length
  }
  assert.deepEqual([distributions, ofLanguages], [34, 23])
})

test('finds nothing in a newer image of the same release, which includes the fixes', async () => {
  const layer = {
    'etc/os-release': fixture('contents/alpine-3.10/os-release'),
    'lib/apk/db/installed': fixture('contents/alpine-3.10/installed'),
  }
  assert.deepEqual(await findingsOf(await pushAndScan(registry, 'acme/app', layer, 'newer')), [])
})

test('finds the same vulnerabilities in openssl as wolfictl, except an ID that is missing in the advisories', async () => {
  const publicOrg = (await registry.seed.group('', { name: registry.app.config.publicOrg })).uid
  const text = fixture('advisories/openssl.advisories.yaml').toString()
  const { records } = readAdvisories('openssl.advisories.yaml', text, 'import')
  const advisories = records.map(({ body }) => body)
  const operator = await registry.as(operatorUid)
  ok(await operator.post('/control/v1/advisories:import', { parent: publicOrg, advisories }))
  const layer = {
    'etc/os-release': 'ID=wolfi\nVERSION_ID=20230201\n',
    'lib/apk/db/installed': 'P:openssl\nV:3.3.0-r0\nA:x86_64\no:openssl\n',
  }
  const digest = await pushAndScan(registry, 'acme/app', layer, 'openssl')
  const viewer = await registry.as(owner)
  const { rawReport } = ok(await viewer.get(`/registry/v1/vuln_reports/raw?digest=${digest}`))
  const found: { names: string[]; fixed: string }[] = JSON.parse(rawReport).vulnerabilities.map((one: Json) => ({
    names: [one.id, ...one.references.map(({ id }: Json) => id)],
    fixed: (one.recommendation ?? '').replace('Update to ', ''),
  }))
  const theirs = JSON.parse(fixture('vulnerabilities/wolfictl-openssl.json').toString()) as [string, string][]
  const ours = theirs.map(([id]) => [id, found.find(({ names }) => names.includes(id))?.fixed ?? 'missing'])
  assert.deepEqual(
    ours,
    theirs.map(([id, fixed]) => [id, id === 'CVE-2024-4741' ? 'missing' : fixed]),
  )
  const ids = new Set(theirs.map(([id]) => id))
  assert.deepEqual(
    found.filter(({ names }) => !names.some((id) => ids.has(id))),
    [],
  )
})
