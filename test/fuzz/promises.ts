// Pushes, moves, deletions, signatures and indexes in repositories whose rules change, while plans of retention are made and
// applied and blobs are collected, with a clock that runs ahead. What a tag points to or has a date, with all that it lists and
// all that is about it, has to be there whatever anybody does. By hand:
// bin/pinfold-node test/fuzz/promises.ts --operations 100000 --sweeps 480. On PostgreSQL when PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { sql } from '#db/sql.ts'
import { sweepRetention } from '#domains/registry/retention/plans.duty.ts'
import { operatorUid } from '#lib/uid.ts'
import { runDuty } from '../support/duties.ts'
import { ok } from '../support/expect.ts'
import { type Random, randomFrom } from '../support/random.ts'
import { digestOf, imageOf, indexOf, type RegistryClient, startRegistry, types } from '../support/registry.ts'

const { values } = parseArgs({
  options: {
    operations: { type: 'string', default: '100000' },
    sweeps: { type: 'string', default: '480' },
    clients: { type: 'string', default: '8' },
    seed: { type: 'string' },
  },
})
const seed = Number(values.seed ?? Date.now() % 1_000_000)
console.log(`--seed ${seed}`)
const [sweeps, clients] = [Number(values.sweeps), Number(values.clients)]
const each = Math.ceil(Number(values.operations) / sweeps / clients)
const [hour, day] = [3_600_000, 86_400_000]
const tags = ['v1', 'v2', 'v3', 'nightly']

let now = Date.parse('2026-01-01T00:00:00.000Z')
await using registry = await startRegistry({ clock: () => new Date(now), blobGraceSeconds: 3 * 3600 })
const { app, pusher, org } = registry
let keepDays = 20

/** `parts` are what an index lists. */
type Known = { text: string; mediaType: string; parts: string[]; subject: string }
/** Of one repository, which one client changes: what there was, and what must be there. */
type Side = {
  name: string
  random: Random
  known: Map<string, Known>
  tagged: Map<string, string>
  until: Map<string, number>
  /** What tags of cosign that it has or has had name, of each manifest. */
  named: Map<string, Set<string>>
  /** What was kept at each moment of this round. */
  throughout: Set<string>
  /** What was asked for in this round, and how it was answered. */
  done: string[]
}
const sides = Array.from({ length: clients }, (_, i): Side => {
  const random = randomFrom(seed * 1000 + i)
  return {
    name: `acme/app${i}`,
    random,
    known: new Map(),
    tagged: new Map(),
    until: new Map(),
    named: new Map(),
    throughout: new Set(),
    done: [],
  }
})
const counts = { operations: 0, refused: 0, guarded: 0, deleted: 0, swept: 0, collected: 0, checked: 0 }
const failures: string[] = []

/** A rule with dates is about these. */
const isRuled = (tag: string): boolean => tag.startsWith('v') && keepDays > 0

/**
 * What must be there, and why: what is tagged or has a date, what that lists, and what is about it. `deleting` where somebody asks
 * for it by name: then only tags that the rule is about count. What is about something counts where that is there, and in `since`:
 * where it was not kept for a while, what is about it may have gone then.
 */
function keptBy(
  { known, tagged, until, named }: Side,
  { deleting = false, since }: { deleting?: boolean; since?: Set<string> } = {},
): Map<string, string> {
  const dated = [...until].filter(([, end]) => end > now)
  const pointed = [...tagged].filter(([tag]) => !deleting || isRuled(tag))
  const kept = new Map<string, string>()
  const keep = (digest: string, why: string) => void (kept.has(digest) || kept.set(digest, why))
  for (const [tag, digest] of pointed) keep(digest, `tag ${tag}`)
  for (const [digest, end] of dated) keep(digest, `until ${new Date(end).toISOString()}`)
  const pairs = [...known].flatMap(([digest, { subject }]) => {
    return [subject, ...(named.get(digest) ?? [])].map((about) => ({ digest, about }))
  })
  const about = Map.groupBy(pairs, (pair) => pair.about)
  for (const [digest, why] of kept) {
    const whole = known.has(digest) && (since === undefined || since.has(digest))
    for (const part of known.get(digest)?.parts ?? []) keep(part, `part of ${digest}, ${why}`)
    for (const one of (whole && about.get(digest)) || []) keep(one.digest, `about ${digest}, ${why}`)
  }
  return kept
}

const cosignTag = (digest: string): string => `${digest.replace(':', '-')}.sig`
const isOfCosign = (tag: string): boolean => tag.endsWith('.sig')
const namedBy = (tag: string): string => tag.slice(0, -4).replace('-', ':')

/** A rule is about the tags `v…`; others keep their last ones, of which nothing is asked here. */
function leave(side: Side, tag: string): void {
  const { tagged, until } = side
  const digest = tagged.get(tag)
  tagged.delete(tag)
  if (digest === undefined) return
  if (isRuled(tag)) until.set(digest, Math.max(until.get(digest) ?? 0, now + keepDays * day))
  else side.throughout = side.throughout.intersection(keptBy(side))
}

async function put(side: Side, client: RegistryClient, manifest: Known, reference?: string): Promise<void> {
  const headers = { 'content-type': manifest.mediaType }
  const digest = digestOf(manifest.text)
  const path = `${side.name}/manifests/${reference ?? digest}`
  const { status } = await client.call('PUT', path, { body: manifest.text, headers })
  side.done.push(`PUT ${reference ?? ''} ${digest} of ${manifest.parts.join() || manifest.subject}: ${status}`)
  // What it needs may have gone meanwhile, since nothing kept it.
  if (status !== 201) {
    return void ([400, 404].includes(status) ? counts.refused++ : failures.push(`PUT ${path}: ${status}`))
  }
  side.known.set(digest, manifest)
  if (reference === undefined || side.tagged.get(reference) === digest) return
  leave(side, reference)
  side.tagged.set(reference, digest)
  if (isOfCosign(reference))
    side.named.set(digest, (side.named.get(digest) ?? new Set<string>()).add(namedBy(reference)))
}

async function newImage(side: Side, client: RegistryClient, subject: string): Promise<Known> {
  const layer = await client.pushBlob(side.name, `layer ${counts.operations} ${side.name}`)
  const config = await client.pushBlob(side.name, '{"architecture":"amd64","os":"linux"}', types.config)
  const about = subject === '' ? {} : { subject: descriptorOf(side, subject), artifactType: 'a/signature' }
  return { text: JSON.stringify(imageOf(config, [layer], about)), mediaType: types.image, parts: [], subject }
}

function descriptorOf({ known }: Side, digest: string) {
  const { text, mediaType } = known.get(digest)!
  return { digest, mediaType, size: Buffer.byteLength(text) }
}

async function step(side: Side, client: RegistryClient): Promise<void> {
  const { name, random, known, tagged } = side
  const digests = [...known.keys()].slice(-60)
  const some = (): string => digests[random.below(digests.length)]!
  const tag = tags[random.below(tags.length)]!
  const kind = digests.length < 4 ? 0 : random.below(100)
  counts.operations++
  if (kind < 40) return put(side, client, await newImage(side, client, ''), random.below(4) === 0 ? undefined : tag)
  if (kind < 46) return put(side, client, await newImage(side, client, some()))
  if (kind < 52) return put(side, client, await newImage(side, client, ''), cosignTag(some()))
  if (kind < 62) {
    const parts = [...new Set([some(), some()])]
    const text = JSON.stringify(
      indexOf(
        parts.map((part) => descriptorOf(side, part)),
        { annotations: { at: String(counts.operations) } },
      ),
    )
    return put(side, client, { text, mediaType: types.index, parts, subject: '' }, tag)
  }
  if (kind < 72) return put(side, client, known.get(some())!, tag)
  if (kind < 76) {
    const status = await remove(side, client, tag)
    if (status === 202) leave(side, tag)
    else if (status !== 404 || tagged.has(tag)) failures.push(`DELETE ${name}:${tag}: ${status}`)
    return
  }
  if (kind < 79) return deleteOfCosign(side, client)
  const digest = some()
  if (kind < 90) return void (await client.call('GET', `${name}/manifests/${digest}`))
  const mustStay = keptBy(side, { deleting: true }).has(digest)
  const status = await remove(side, client, digest)
  if (status === 202) {
    counts.deleted++
    if (!mustStay) known.delete(digest)
    // Its tags go with it.
    for (const [tag, at] of tagged) if (at === digest) leave(side, tag)
    side.throughout = side.throughout.intersection(keptBy(side))
  }
  if (status === 409) counts.refused++
  if (status === 202 && mustStay) failures.push(`${name}@${digest} is kept, and was deleted`)
}

/** Answers with the status. */
async function remove({ name, done }: Side, client: RegistryClient, reference: string): Promise<number> {
  const { status } = await client.call('DELETE', `${name}/manifests/${reference}`)
  done.push(`DELETE ${reference}: ${status}`)
  return status
}

async function deleteOfCosign(side: Side, client: RegistryClient): Promise<void> {
  const all = [...side.tagged.keys()].filter(isOfCosign).slice(-10)
  const tag = all[side.random.below(Math.max(1, all.length))]
  if (tag === undefined) return
  const mustStay = keptBy(side, { deleting: true }).has(namedBy(tag))
  const status = await remove(side, client, tag)
  if (status === 202) leave(side, tag)
  else if (status === 409) counts.guarded++
  else failures.push(`DELETE ${side.name}:${tag}: ${status}`)
  if (status === 202 && mustStay) failures.push(`${side.name}:${tag} names what is kept, and was deleted`)
}

async function sweep(): Promise<void> {
  const operator = await registry.as(operatorUid)
  const plan = ok(await operator.post(`/registry/v2/retentionPlans/${org.uid}`, {}))
  await runDuty(app, sweepRetention)
  await operator.post(`/registry/v2/retentionPlans/${plan.uid}:apply`, {})
  counts.swept += (await runDuty(app, sweepRetention)).deleted as number
  // Nothing collects unless it is asked for.
  counts.collected += Number(ok(await operator.post('/control/v1/blobs:collect', {})).blobs)
}

async function check(round: number): Promise<void> {
  for (const side of sides) {
    const rows = await app.db.all<{ digest: string }>(sql`
      SELECT m.digest FROM manifests m JOIN repos r ON r.id = m.repo_id WHERE r.name = ${side.name.slice(5)}`)
    const here = new Set(rows.map(({ digest }) => digest))
    for (const [digest, why] of keptBy(side, { since: side.throughout })) {
      // Somebody has asked for its deletion when nothing kept it.
      if (!side.known.has(digest)) continue
      counts.checked++
      if (here.has(digest)) continue
      failures.push([`sweep ${round}: ${side.name}@${digest} is kept, and is gone: ${why}`, ...side.done].join('\n  '))
    }
    for (const digest of side.known.keys()) if (!here.has(digest)) side.known.delete(digest)
  }
}

const first = await registry.as(operatorUid)
const rule = ok(
  await first.post(`/registry/v2/retentionRules/${org.uid}`, {
    tags: ['v*'],
    keepDaysAfter: keepDays,
    mode: 'ENFORCE',
  }),
)
ok(
  await first.post(`/registry/v2/retentionRules/${org.uid}`, {
    tags: ['nightly'],
    keepLast: 2,
    untaggedDays: 3,
    mode: 'ENFORCE',
  }),
)
const began = performance.now()
for (let round = 1; round <= sweeps; round++) {
  const client = await registry.registryAs(pusher.uid)
  const play = async (side: Side): Promise<void> => {
    for (let i = 0; i < each; i++) await step(side, client)
  }
  for (const side of sides) {
    side.throughout = new Set(keptBy(side).keys())
    side.done = []
  }
  await Promise.all([...sides.map(play), sweep()])
  await check(round)
  if (round % 20 === 0) console.log(`${round} sweeps: ${JSON.stringify(counts)}`)
  if (failures.length > 0) break
  now += 6 * hour + (round % 5) * hour
  if (round % 7 === 0) {
    const modes = ['ENFORCE', 'ENFORCE', 'OFF'] as const
    const [days, mode] = [[5, 20, 40, 1][(round / 7) % 4]!, modes[(round / 7) % 3]!]
    const operator = await registry.as(operatorUid)
    ok(
      await operator.patch(`/registry/v2/retentionRules/${rule.uid}?update_mask=keep_days_after,mode`, {
        keepDaysAfter: days,
        mode,
      }),
    )
    keepDays = mode === 'OFF' ? 0 : days
  }
}
const reader = await registry.registryAs(pusher.uid)
for (const side of sides) {
  for (const digest of keptBy(side).keys()) {
    const known = side.known.get(digest)
    if (!known || known.parts.length > 0) continue
    const { config, layers } = JSON.parse(known.text)
    for (const blob of [config, ...layers]) {
      const { status } = await reader.call('HEAD', `${side.name}/blobs/${blob.digest}`)
      if (status !== 200) failures.push(`${side.name}: a blob of ${digest} is ${status}`)
    }
  }
}
console.log(`${app.db.engine}: ${JSON.stringify(counts)} in ${Math.round((performance.now() - began) / 1000)} s`)
for (const one of failures.slice(0, 10)) console.log(one)
assert.equal(failures.length, 0)
const tried = [counts.swept, counts.refused, counts.guarded, counts.collected]
assert.ok(!tried.includes(0), 'otherwise nothing was tried')
console.log('0 promised digests missing, 0 children or signatures of what is kept')
