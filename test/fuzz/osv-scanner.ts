// Compares findings of osv-scanner and of this project for the same records and packages, and prints the differences. To run it by hand:
//   bin/pinfold-node test/fuzz/osv-scanner.ts --scanner PATH --records FILE… [--packages 2000] [--seed 1]
// A file contains one OSV record per line, and can be compressed with gzip. To build the scanner: `go install
// github.com/google/osv-scanner/v2/cmd/osv-scanner@v2.0.2`. The scanner runs offline.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import type { SourceRecord } from '#domains/scanning/records/records.service.ts'
import { chunks } from '#lib/chunks.ts'
import { readOsv } from '#sources/osv.ts'
import { projectName } from '#versions/pep503.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { pushLayers, pushSbom } from '../support/images.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { randomFrom } from '../support/random.ts'
import { startRegistry } from '../support/registry.ts'
import { readSource } from '../support/scanning.ts'
import { zipOf } from '../support/zip.ts'

const { values } = parseArgs({
  options: {
    scanner: { type: 'string' },
    records: { type: 'string', multiple: true, default: [] },
    packages: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
  },
})
const random = randomFrom(Number(values.seed))
const types: Readonly<Record<string, string>> = {
  PyPI: 'pypi',
  Go: 'golang',
  npm: 'npm',
  RubyGems: 'gem',
  Maven: 'maven',
}

type Given = { id: string; text: string; record: SourceRecord }
const given = values.records.flatMap((file) => {
  const bytes = readFileSync(file)
  const lines = (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString().split('\n')
  return lines
    .filter((line) => line !== '')
    .map((text): Given => ({ id: JSON.parse(text).id, text, record: readOsv(text) }))
})
const ecosystems = [...new Set(given.flatMap(({ record }) => record.affected.map((one) => one.ecosystem)))].filter(
  (one) => types[one],
)

/** Versions that records list, by `ecosystem name`. */
const listed = new Map<string, Set<string>>()
for (const { text } of given) {
  for (const { package: named, versions = [] } of (JSON.parse(text).affected ?? []) as Json[]) {
    if (!named || versions.length === 0) continue
    const key = `${named.ecosystem} ${readName(named)}`
    const known = listed.get(key) ?? new Set()
    listed.set(key, known)
    for (const version of versions) known.add(version)
  }
}

function readName({ ecosystem, name }: Json): string {
  return ecosystem === 'PyPI' ? projectName(name) : name
}

/**
 * Versions of a record's list; without a list, versions at the ends of ranges and beside them. If there is a list, osv-scanner
 * takes only these for vulnerable. By the specification we also take versions within the ranges. Only invented versions differ.
 */
function versionsOf({ ecosystem, name, ranges }: SourceRecord['affected'][number]): string[] {
  const known = listed.get(`${ecosystem} ${name}`)
  if (known) return [...known].filter((one) => /^[\w.+!-]+$/.test(one))
  const ends = ranges.flatMap(({ events }) => events.flatMap((event) => Object.values(event) as string[]))
  const real = ends.filter((one) => one !== '0')
  const near = real.map((one) => one.replace(/\d+$/, (last) => `${Number(last) + 1}`))
  return [...real, ...near, '0.0.1', '1.2.3', '99.0.0'].filter((one) => /^[\w.+!-]+$/.test(one))
}

const candidates = new Map<string, { purl: string; name: string; version: string }>()
for (const { record } of given) {
  for (const one of record.affected) {
    if (!types[one.ecosystem]) continue
    for (const found of versionsOf(one)) {
      const version = one.ecosystem === 'Go' && one.name !== 'stdlib' ? `v${found}` : found
      const name = one.name.split('/').map(encodeURIComponent).join('/').replace(':', '/')
      const purl = `pkg:${types[one.ecosystem]}/${name}@${encodeURIComponent(version)}`
      candidates.set(purl, { purl, name: one.name, version })
    }
  }
}
const chosen = [...candidates.values()]
  .map((one) => ({ one, at: random.below(2 ** 31) }))
  .sort((a, b) => a.at - b.at)
  .slice(0, Number(values.packages))
  .map(({ one }) => one)
const sbomOf = (some: typeof chosen) => {
  const components = some.map((one) => ({ type: 'library', ...one }))
  return JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.5', version: 1, components })
}
/** An image with more packages may have more findings than a list returns. */
const perImage = 100

/** Runs osv-scanner. Returns its findings as `ecosystem name version id`, with the ids of the OSV records. */
function theirs(): Set<string> {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-osv-'))
  for (const ecosystem of ecosystems) {
    const entries = given.filter(({ record }) => record.affected.some((one) => one.ecosystem === ecosystem))
    mkdirSync(join(folder, 'osv-scanner', ecosystem), { recursive: true })
    const zip = zipOf(Object.fromEntries(entries.map(({ id, text }) => [`${id}.json`, text])))
    writeFileSync(join(folder, 'osv-scanner', ecosystem, 'all.zip'), zip)
  }
  const file = join(folder, 'bom.cdx.json')
  writeFileSync(file, sbomOf(chosen))
  const args = ['scan', 'source', '--offline', '--all-packages', '--format', 'json', '-S', file]
  const env = { ...process.env, OSV_SCANNER_LOCAL_DB_CACHE_DIRECTORY: folder }
  let out = ''
  try {
    out = execFileSync(values.scanner!, args, {
      env,
      encoding: 'utf8',
      maxBuffer: 2 ** 30,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  } catch (error) {
    // The scanner exits with 1 if it has findings.
    out = (error as { stdout: string }).stdout
  }
  rmSync(folder, { recursive: true })
  const { results } = JSON.parse(out) as Json
  return new Set(
    results.flatMap(({ packages }: Json) =>
      packages.flatMap(({ package: { name, version, ecosystem }, vulnerabilities = [] }: Json) =>
        vulnerabilities.map(({ id }: Json) => `${ecosystem} ${name} ${plain(version)} ${id}`),
      ),
    ),
  )
}

const plain = (version: string) => version.replace(/^v/, '')

async function ours(): Promise<Set<string>> {
  await using registry = await startRegistry()
  const repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  const viewer = await registry.as((await registry.seed.member(registry.org.uid, roleUids.owner)).uid)
  for (const ecosystem of ecosystems) {
    const records = given
      .map(({ record }) => record)
      .filter(({ affected }) => affected.some((one) => one.ecosystem === ecosystem))
    await readSource(registry.app, ecosystem, records)
  }
  const pusher = await registry.registryAs(registry.pusher.uid)
  const found = new Set<string>()
  for (const some of chunks(chosen, perImage)) {
    const sbom = sbomOf(some)
    const image = await pushLayers(pusher, 'acme/app', [{ 'etc/motd': sbom }], 'latest')
    await pushSbom(pusher, 'acme/app', image, sbom, 'application/vnd.cyclonedx+json')
    await runJob(registry.app, readImages)
    await runJob(registry.app, matchPackages)
    const { findings, gaps } = ok(await viewer.get(`/registry/v2/repos/${repo}/digests/${image.digest}/findings`))
    for (const gap of gaps) console.log('gap', JSON.stringify(gap))
    const nameOf = new Map(some.map((one) => [one.purl.toLowerCase(), one]))
    for (const { purl, ecosystem, record } of findings as Json[]) {
      const { name, version } = nameOf.get(purl.split('?')[0].toLowerCase()) ?? { name: purl, version: '' }
      found.add(`${ecosystem} ${name} ${plain(version)} ${record}`)
    }
  }
  return found
}

/**
 * If a record has a list, osv-scanner looks at nothing else; by the specification, versions within the ranges are vulnerable too.
 */
function isWithinRangesOnly(found: string): boolean {
  const [ecosystem, name, version, id] = found.split(' ')
  const { text } = given.find((one) => one.id === id)!
  const said = (JSON.parse(text).affected as Json[]).filter(({ package: named }) => {
    return named.ecosystem === ecosystem && readName(named) === name
  })
  return said.some(({ versions = [], ranges = [] }) => {
    return versions.length > 0 && ranges.length > 0 && !versions.includes(version)
  })
}

const [one, other] = [theirs(), await ours()]
const both = [...one].filter((found) => other.has(found)).length
const extra = [...other].filter((found) => !one.has(found))
const unexplained = extra.filter((found) => !isWithinRangesOnly(found))
const [recall, precision] = [both / one.size, both / (both + unexplained.length)]
console.log(`${chosen.length} packages, ${given.length} records of ${ecosystems.join(', ')}`)
console.log(`osv-scanner ${one.size}, ours ${other.size}, both ${both}`)
console.log(
  `${extra.length - unexplained.length} more of ours are within the ranges, but not on the list of the record`,
)
console.log(`recall ${(100 * recall).toFixed(2)} %, precision ${(100 * precision).toFixed(2)} % without these`)
for (const found of one) if (!other.has(found)) console.log('missing', found)
for (const found of unexplained) console.log('extra', found)
process.exitCode = recall >= 0.99 && precision >= 0.99 ? 0 : 1
