// Time of one comparison of versions, with the test vectors: `bin/pinfold-node bench/versions.ts`.
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { compareVersions, type Scheme } from '#versions/order.ts'
import { median } from './load.ts'

const files: [ecosystem: string, scheme: Scheme][] = [
  ['alpine', 'apk'],
  ['debian', 'deb'],
  ['maven', 'maven'],
  ['pypi', 'pep440'],
  ['rubygems', 'gem'],
]
const rounds = 9

function pairsOf(ecosystem: string): [string, string][] {
  const file = new URL(`../test/data/versions/${ecosystem}.txt.gz`, import.meta.url)
  const lines = gunzipSync(readFileSync(file)).toString().split('\n')
  return lines.map((line) => line.split(/ [<=>] /)).filter((pair) => pair.length === 2) as [string, string][]
}

function microseconds(scheme: Scheme, pairs: readonly [string, string][]): number {
  const before = process.cpuUsage()
  for (const [one, other] of pairs) compareVersions(scheme, one, other)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / pairs.length
}

const measured = files.map(([ecosystem, scheme]) => [ecosystem, scheme, pairsOf(ecosystem)] as const)
// Version numbers are what npm, Cargo and Go compare most of the time. These tools have no published test vectors.
const releases = pairsOf('pypi').filter((pair) => pair.every((one) => /^\d+\.\d+\.\d+$/.test(one)))
for (const [ecosystem, scheme, pairs] of [...measured, ['releases', 'semver', releases] as const]) {
  const times = Array.from({ length: rounds }, () => microseconds(scheme, pairs))
  process.stdout.write(`${ecosystem}: ${median(times).toFixed(1)} µs (${scheme}, ${pairs.length} pairs)\n`)
}
