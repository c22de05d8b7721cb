// Pushes, tag updates, deletions, signatures and indexes in repositories whose retention rules change. Meanwhile, deletion plans
// are made and applied, blobs are collected, and the clock runs ahead. A manifest must stay if it is tagged, has a retention
// date, is under a legal hold, or is one of the latest. So must everything that it lists, its referrers and its blobs. To run it
// by hand:
//   bin/pinfold-node test/fuzz/retention-locks.ts --operations 100000 --sweeps 480
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { sql } from '#db/sql.ts'
import { sweepRetention } from '#domains/policy/retention/plans.job.ts'
import { operatorUid } from '#lib/uid.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import type { Client, Json } from '../support/pinfold.ts'
import { type Random, randomFrom } from '../support/random.ts'
import {
  digestOf,
  imageOf,
  indexOf,
  type RegistryClient,
  type Reply,
  startRegistry,
  types,
} from '../support/registry.ts'

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
/** Number of digests that `nightly` keeps. */
const keepLast = 2
const mostHolds = 2

let now = Date.parse('2026-01-01T00:00:00.000Z')
await using registry = await startRegistry({ clock: () => new Date(now), blobGraceSeconds: 3 * 3600 })
const { app, pusher, org } = registry
/** Settings of the rule about `v…`, and of the rule about untagged manifests. */
let [keepDays, untaggedDays] = [20, 3]

/** `parts` are the manifests that an index lists. */
type Known = { text: string; mediaType: string; parts: string[]; subject: string }
/** Date of a digest, or of all digests that a tag has had. */
type Hold = { uid: string; digest: string; tags: string[] }
/** State of one repository, which one client changes: past manifests, and manifests that must be there. */
type Side = {
  name: string
  uid: string
  random: Random
  known: Map<string, Known>
  tagged: Map<string, string>
  until: Map<string, { end: number; by: 'left' | 'untagged' }>
  had: Map<string, Set<string>>
  /** Digests that `nightly` has had. */
  last: string[]
  holds: Hold[]
  /** Digests in the names of cosign tags that each manifest has or has had. */
  named: Map<string, Set<string>>
  /** Kept manifests at each moment of this round. */
  throughout: Set<string>
  /** Requests of this round and their answers. */
  done: string[]
}
const sides: Side[] = []
for (let i = 0; i < clients; i++) {
  const { uid } = await registry.seed.repo(org.uid, { name: `app${i}` })
  sides.push({
    name: `acme/app${i}`,
    uid,
    random: randomFrom(seed * 1000 + i),
    known: new Map(),
    tagged: new Map(),
    until: new Map(),
    had: new Map(),
    last: [],
    holds: [],
    named: new Map(),
    throughout: new Set(),
    done: [],
  })
}
const random = randomFrom(seed * 1000 + 999)
const counts = {
  operations: 0,
  refused: 0,
  guarded: 0,
  deleted: 0,
  swept: 0,
  collected: 0,
  released: 0,
  blobs: 0,
  unnamed: 0,
}
/** Checked manifests, counted by the first word of the reason. */
const kept = { tag: 0, left: 0, untagged: 0, last: 0, held: 0, part: 0, about: 0 }
const failures: string[] = []

/** True if the rule with retention dates applies to the tag. */
const isRuled = (tag: string): boolean => tag.startsWith('v') && keepDays > 0

const isTagHeld = ({ holds }: Side, tag: string): boolean => holds.some((hold) => hold.tags.includes(tag))
const isHeld = ({ holds, had }: Side, digest: string): boolean => {
  return holds.some((hold) => hold.digest === digest || hold.tags.some((tag) => had.get(tag)?.has(digest)))
}

/**
 * Manifests that must be there, with the reason: tagged, dated, one of the last or held, listed by such a manifest, or about it.
 * With `deleting`, a client asks for one by name: then only tags that the rule is about count. A manifest about another counts if
 * that one is there, and in `since`: while that one was not kept, it may have been deleted.
 */
function keptBy(
  side: Side,
  { deleting = false, since }: { deleting?: boolean; since?: Set<string> } = {},
): Map<string, string> {
  const { known, tagged, until, last, named } = side
  const dated = [...until].filter(([, { end }]) => end > now)
  const pointed = [...tagged].filter(([tag]) => !deleting || isRuled(tag))
  const kept = new Map<string, string>()
  const keep = (digest: string, why: string) => void (kept.has(digest) || kept.set(digest, why))
  for (const [tag, digest] of pointed) keep(digest, `tag ${tag}`)
  for (const [digest, { end, by }] of dated) keep(digest, `${by} until ${new Date(end).toISOString()}`)
  for (const digest of last) keep(digest, 'last of nightly')
  for (const digest of known.keys()) if (isHeld(side, digest)) keep(digest, 'held')
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

function promise({ until }: Side, digest: string, days: number, by: 'left' | 'untagged'): void {
  const end = now + days * day
  if (end > (until.get(digest)?.end ?? 0)) until.set(digest, { end, by })
}

/** The tag moves from its digest to `to`, or is deleted. The rule gives the digest a date, so everything stays kept. */
function move(side: Side, tag: string, to?: string): void {
  const { tagged, had, named } = side
  const from = tagged.get(tag)
  if (from === to) return
  tagged.delete(tag)
  if (to !== undefined) {
    tagged.set(tag, to)
    had.set(tag, (had.get(tag) ?? new Set<string>()).add(to))
    if (tag === 'nightly') side.last = [to, ...side.last.filter((one) => one !== to)].slice(0, keepLast)
    if (isOfCosign(tag)) named.set(to, (named.get(to) ?? new Set<string>()).add(namedBy(tag)))
  }
  if (from !== undefined && isRuled(tag)) promise(side, from, keepDays, 'left')
  else if (tag === 'nightly' || from !== undefined) side.throughout = side.throughout.intersection(keptBy(side))
}

async function put(side: Side, client: RegistryClient, manifest: Known, reference?: string): Promise<void> {
  const headers = { 'content-type': manifest.mediaType }
  const digest = digestOf(manifest.text)
  const path = `${side.name}/manifests/${reference ?? digest}`
  const reply = await client.call('PUT', path, { body: manifest.text, headers })
  const { status } = reply
  side.done.push(`PUT ${reference ?? ''} ${digest} of ${manifest.parts.join() || manifest.subject}: ${status}`)
  if (status !== 201) {
    return void (mayBeRefused(side, manifest, reply) ? counts.refused++ : failures.push(`PUT ${path}: ${reply.bytes}`))
  }
  side.known.set(digest, manifest)
  if (reference === undefined) promise(side, digest, untaggedDays, 'untagged')
  else move(side, reference, digest)
}

/**
 * Listed manifests may have been deleted if nothing kept them, and with an image its blobs. The blobs of a new image were pushed
 * just now.
 */
function mayBeRefused(side: Side, { text, parts }: Known, { status, bytes }: Reply): boolean {
  if (![400, 404].includes(status)) return false
  if (String(bytes).includes('indexes can be nested')) return true
  const [digest, kept] = [digestOf(text), keptBy(side, { since: side.throughout })]
  const mayLack = parts.length > 0 ? parts.some((part) => !kept.has(part)) : side.known.has(digest)
  return mayLack && !kept.has(digest)
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
  if (kind < 76) return deleteTag(side, client, tag)
  if (kind < 79) return deleteOfCosign(side, client)
  const digest = some()
  if (kind < 90) return void (await client.call('GET', `${name}/manifests/${digest}`))
  const mustStay = keptBy(side, { deleting: true }).has(digest)
  const status = await remove(side, client, digest)
  if (status === 202) {
    counts.deleted++
    if (!mustStay) known.delete(digest)
    // The tags of the manifest are deleted with it.
    for (const [tag, at] of tagged) if (at === digest) move(side, tag)
    side.throughout = side.throughout.intersection(keptBy(side))
  }
  if (status === 409) counts.refused++
  if (status === 202 && mustStay) failures.push(`${name}@${digest} is kept, and was deleted`)
}

/** Sends a request and returns the status. */
async function remove({ name, done }: Side, client: RegistryClient, reference: string): Promise<number> {
  const { status } = await client.call('DELETE', `${name}/manifests/${reference}`)
  done.push(`DELETE ${reference}: ${status}`)
  return status
}

async function deleteTag(side: Side, client: RegistryClient, tag: string): Promise<void> {
  const mustStay = isTagHeld(side, tag)
  const status = await remove(side, client, tag)
  if (status === 202) move(side, tag)
  else if (status === 409 && isTagHeld(side, tag)) counts.guarded++
  else if (status !== 404 || side.tagged.has(tag)) failures.push(`DELETE ${side.name}:${tag}: ${status}`)
  if (status === 202 && mustStay) failures.push(`${side.name}:${tag} is held, and was deleted`)
}

async function deleteOfCosign(side: Side, client: RegistryClient): Promise<void> {
  const all = [...side.tagged.keys()].filter(isOfCosign).slice(-10)
  const tag = all[side.random.below(Math.max(1, all.length))]
  if (tag === undefined) return
  const mustStay = keptBy(side, { deleting: true }).get(namedBy(tag))
  const status = await remove(side, client, tag)
  if (status === 202) move(side, tag)
  else if (status === 409) counts.guarded++
  else failures.push(`DELETE ${side.name}:${tag}: ${status}`)
  if (status !== 202 || !mustStay) return
  // It is no more than a name where what it names has gone, while nothing kept that: what must be there, each round looks for.
  const named = await client.call('HEAD', `${side.name}/manifests/${namedBy(tag)}`)
  if (named.status === 404) counts.unnamed++
  else failures.push(`${side.name}:${tag} names what is kept, and was deleted: ${mustStay}`)
}

async function sweep(round: number): Promise<void> {
  const operator = await registry.as(operatorUid)
  const plan = ok(await operator.post(`/registry/v2/retentionPlans/${org.uid}`, {}))
  await runJob(app, sweepRetention)
  await holdSome(operator, plan.uid)
  if (round % 5 === 0) {
    const side = sides[random.below(clients)]!
    await hold(operator, side, side.uid, { tags: [tags[random.below(tags.length)]!] })
  }
  await operator.post(`/registry/v2/retentionPlans/${plan.uid}:apply`, {})
  counts.swept += (await runJob(app, sweepRetention)).deleted as number
  // Nothing collects unless it is asked for.
  counts.collected += Number(ok(await operator.post('/control/v1/blobs:collect', {})).blobs)
}

/** Manifests that the plan would delete are there until it is applied. */
async function holdSome(operator: Client, plan: string): Promise<void> {
  const { deletions } = ok(await operator.get(`/registry/v2/retentionPlans/${plan}/deletions?page_size=100`))
  if (deletions.length === 0) return
  const { repoUid, digest } = deletions[random.below(deletions.length)]
  await hold(operator, sides.find(({ uid }) => uid === repoUid)!, org.uid, { digest })
}

async function hold(operator: Client, side: Side, scope: string, says: Json): Promise<void> {
  const { uid } = ok(await operator.post(`/registry/v2/holds/${scope}`, { ...says, reason: 'asked for' }))
  side.holds.push({ uid, digest: '', tags: [], ...says })
}

/** While nobody asks for deletions. */
async function release(operator: Client): Promise<void> {
  for (const { holds } of sides) {
    for (const { uid } of holds.splice(0, holds.length - mostHolds)) {
      ok(await operator.post(`/registry/v2/holds/${uid}:release`, {}))
      counts.released++
    }
  }
}

async function check(round: number, client: RegistryClient): Promise<void> {
  for (const side of sides) {
    const rows = await app.db.all<{ digest: string }>(sql`
      SELECT m.digest FROM manifests m JOIN repos r ON r.id = m.repo_id WHERE r.name = ${side.name.slice(5)}`)
    const here = new Set(rows.map(({ digest }) => digest))
    const images: string[] = []
    for (const [digest, why] of keptBy(side, { since: side.throughout })) {
      // Somebody has asked for its deletion when nothing kept it.
      if (!side.known.has(digest)) continue
      kept[why.split(' ', 1)[0] as keyof typeof kept]++
      if (here.has(digest)) {
        if (side.known.get(digest)!.parts.length === 0) images.push(digest)
        continue
      }
      failures.push([`sweep ${round}: ${side.name}@${digest} is kept, and is gone: ${why}`, ...side.done].join('\n  '))
    }
    for (const digest of side.known.keys()) if (!here.has(digest)) side.known.delete(digest)
    for (const [digest, { end }] of side.until) if (end <= now) side.until.delete(digest)
    const some = images.length > 0 ? [1, 2].map(() => images[side.random.below(images.length)]!) : []
    await checkBlobs(side, client, new Set(some))
  }
}

async function checkBlobs({ name, known }: Side, client: RegistryClient, images: Iterable<string>): Promise<void> {
  for (const image of images) {
    const { config, layers } = JSON.parse(known.get(image)!.text)
    for (const { digest } of [config, ...layers]) {
      const { status, bytes } = await client.call('GET', `${name}/blobs/${digest}`)
      counts.blobs++
      if (status !== 200) failures.push(`${name}: the blob ${digest} of ${image}, which is kept, is ${status}`)
      else if (digestOf(bytes) !== digest) failures.push(`${name}: the blob ${digest} of ${image} is another one`)
    }
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
const other = ok(
  await first.post(`/registry/v2/retentionRules/${org.uid}`, {
    tags: ['nightly'],
    keepLast,
    untaggedDays,
    mode: 'ENFORCE',
  }),
)
const began = performance.now()
for (let round = 1; round <= sweeps; round++) {
  const client = await registry.registryAs(pusher.uid)
  const play = async (side: Side): Promise<void> => {
    for (let i = 0; i < each; i++) await step(side, client)
  }
  await release(await registry.as(operatorUid))
  for (const side of sides) {
    side.throughout = new Set(keptBy(side).keys())
    side.done = []
  }
  await Promise.all([...sides.map(play), sweep(round)])
  await check(round, client)
  if (round % 20 === 0) console.log(`${round} sweeps: ${JSON.stringify({ ...counts, kept })}`)
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
    untaggedDays = [2, 5, 1, 3][(round / 7) % 4]!
    ok(await operator.patch(`/registry/v2/retentionRules/${other.uid}?update_mask=untagged_days`, { untaggedDays }))
  }
}
const reader = await registry.registryAs(pusher.uid)
for (const side of sides) {
  const images = [...keptBy(side).keys()].filter((digest) => side.known.get(digest)?.parts.length === 0)
  await checkBlobs(side, reader, images)
}
console.log(
  `${app.db.engine}: ${JSON.stringify({ ...counts, kept })} in ${Math.round((performance.now() - began) / 1000)} s`,
)
for (const one of failures.slice(0, 10)) console.log(one)
assert.equal(failures.length, 0)
const tried = [counts.swept, counts.refused, counts.guarded, counts.collected, counts.released, ...Object.values(kept)]
assert.ok(!tried.includes(0), 'otherwise nothing was tried')
console.log('0 promised digests missing, 0 children or signatures of what is kept')
