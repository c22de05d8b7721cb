// Time of `verify` over many tags. The program pushes `--manifests` images and points `--tags` tags to them in turn. Then it
// makes each check by itself and prints the number of checked items and the time. By hand: bin/pinfold-node test/fuzz/verify.ts
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one. With --check it fails above a minute for each million tags.
import assert from 'node:assert/strict'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { checks, verify } from '../../src/maintenance/verify.ts'
import { atOnce } from '../support/at-once.ts'
import { digestOf, startRegistry, types } from '../support/registry.ts'

const { values } = parseArgs({
  options: {
    tags: { type: 'string', default: '1000000' },
    manifests: { type: 'string', default: '100000' },
    check: { type: 'boolean', default: false },
  },
})
const [tags, manifests] = [Number(values.tags), Number(values.manifests)]
const repos = 10
/** So that the ledger has more than one row of some. */
const movedTwice = 10
const lanes = 16
await using registry = await startRegistry({ jobs: [] })
const { app, pusher } = registry

const began = performance.now()
assert.equal(
  manifests % repos,
  0,
  '--manifests must be divisible by 10, so that a tag and its manifest are in one repository',
)
const templates: string[] = []
for (let i = 0; i < repos; i++) {
  const { digest } = await pusher.pushImage(`acme/app${i}`, 'first')
  templates.push((await pusher.ok(200, 'GET', `acme/app${i}/manifests/${digest}`)).bytes.toString())
}
const headers = { 'content-type': types.image }
const bodies = Array.from({ length: manifests }, (_, i) => {
  return JSON.stringify({ ...JSON.parse(templates[i % repos]!), annotations: { version: `1.0.${i}` } })
})
const at = (i: number) => `acme/app${i % repos}/manifests`
await atOnce(lanes, manifests, (i) => {
  return pusher.ok(201, 'PUT', `${at(i)}/${digestOf(bodies[i]!)}`, { body: bodies[i]!, headers })
})
const push = (i: number, body: number) => pusher.ok(201, 'PUT', `${at(i)}/t${i}`, { body: bodies[body]!, headers })
await atOnce(lanes, tags, (i) => push(i, i % manifests))
await atOnce(lanes, Math.floor(tags / movedTwice), (i) => push(i, (i + repos) % manifests))
console.log(
  `${app.db.engine}: ${manifests} images, ${tags} tags in ${Math.round((performance.now() - began) / 1000)} s`,
)

let total = 0
for (const check of checks) {
  const from = performance.now()
  const { examined, found } = (await verify(app.config, { repair: false, hash: false, only: [check] }))[check]
  const seconds = (performance.now() - from) / 1000
  assert.equal(found, 0, `${check} found ${found} that are not right`)
  if (check === 'tags') assert.ok(examined >= tags, `${examined} tags were looked at`)
  if (check === 'manifests') assert.ok(examined >= manifests, `${examined} manifests were looked at`)
  total += seconds
  console.log(`${check}: ${examined} in ${seconds.toFixed(1)} s`)
}
const perMillion = (total / tags) * 1e6
console.log(`all in ${total.toFixed(1)} s, ${perMillion.toFixed(1)} s for a million tags`)
if (values.check) assert.ok(perMillion <= 60, 'more than a minute for a million tags')
