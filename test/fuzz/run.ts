// `npm run fuzz [-- --seconds N --seed N --only 'redirect,SCIM patch']`: mutated input for every parser of untrusted input. Each
// input must return a value, an AppError about the input or, for an image, Unreadable. No input may take long.
import { parseArgs } from 'node:util'
import type { DescMessage, Message } from '@bufbuild/protobuf'
import { buildEndpoints } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { resolveMask } from '#api/transcoding/field-mask.ts'
import { parseBody, readJson } from '#api/transcoding/json-read.ts'
import { jsonText } from '#api/transcoding/json-write.ts'
import { buildRoutes } from '#api/transcoding/routes.ts'
import { readRequest } from '#api/transcoding/transcode.ts'
import { Unreadable } from '#contents/packages.ts'
import { isSignedBy, readInviteCode, writeInviteCode } from '#domains/iam/invites/invite-code.ts'
import { problemOfReadme } from '#domains/registry/repos/readme.ts'
import { decodeBits } from '#lib/capability-set.ts'
import { createSecretCipher } from '#lib/crypto/secret-cipher.ts'
import { AppError } from '#lib/errors.ts'
import { readPage } from '#lib/lists/paging.ts'
import { isRepoPath, reservedReason } from '#lib/oci-names.ts'
import { parseTimestamp } from '#lib/timestamp.ts'
import { oneOf, type Random, randomFrom } from '../support/random.ts'
import { contentsTargets } from './contents.ts'
import { labelTargets } from './labels.ts'
import { closeManifests, manifestTargets } from './manifests.ts'
import { mutate } from './mutate.ts'
import { programTargets } from './programs.ts'
import { provisioningTargets } from './provisioning.ts'
import { tokenTargets } from './tokens.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now()) },
    only: { type: 'string', default: '' },
  },
})
/** Limit of processor time, since the machine may be busy. */
const slowMs = 1000
const endpoints = buildEndpoints(services)
const routes = buildRoutes(endpoints)
const cipher = createSecretCipher(Buffer.alloc(32, 1))
const paging = { app: { cipher }, method: { fullName: 'fuzz' }, caller: { uid: 'fuzz' }, now: new Date().toISOString() }
const uid = `${'0123456789abcdef'.repeat(3).slice(0, 40)}/0123456789abcdef`

const bodies = [
  '{"name":"web","description":"The shop","bundles":["base"],"catalogTier":"CATALOG_TIER_BASE"}',
  '{"name":"ci","claimMatch":{"issuer":"https://a.example","subject":"s","claims":{"a":"b"},"claimPatterns":{"c":".*"}}}',
  '{"name":"k","staticKeys":{"issuer":"i","subject":"s","issuerKeys":"{\\"keys\\":[]}","expirationTime":"2026-01-02T03:04:05.678Z"}}',
  '{"parent":"x","requests":[{"roleBinding":{"identityUid":"a","roleUid":"b"}}],"roleUid":"c"}',
  '{"roleUid":"r","ttl":"3600.5s","email":"a@b","singleUse":true}',
  '{"github":{"appInstallations":{"12":{"installations":[{"installationId":"9007199254740993"}]}}}}',
  '{"name":"r","capabilities":["repo.list","CAP_TAG_LIST",101]}',
]
const searches = [
  'uidp.descendants_of=a&page_size=50&order_by=name%20desc&skip=3',
  'uidp.inRoot=true&pageToken=abc&name=%E2%82%AC',
  'updateMask=name,description,claim_match.subject',
  'artifactNames=a&artifactNames=b,c&latest_event_type=2&query=+',
  'imageRefs=acme/web:latest,1.0&image_refs=a/b&start_time=2026-01-02T03:04:05Z',
]
const paths = [
  `/registry/v2/repos/${uid}/readme`,
  `/iam/v2/groups/${uid}:requestGroupAccess`,
  `/registry/v2beta1/repos/${uid.replace('/', '%2F')}`,
  `/registry/v2/repos/${uid}/digests/sha256:00/size`,
  '/iam/v2/roleBindings:batchCreate',
]

const invite = writeInviteCode({ grp: uid, role: uid, exp: 1_800_000_000, jti: '0123456789abcdef' })
const inviteSays = Buffer.from(invite.code, 'base64').toString()

/** Message types for which each body is a valid example. */
const messages = new Set(
  endpoints.flatMap(({ desc }) => [desc.input, ...desc.input.fields.flatMap((field) => field.message ?? [])]),
)
const readable = bodies.map((text) => {
  const accepts = (desc: DescMessage) => {
    try {
      readJson(desc, JSON.parse(text))
      return true
    } catch {
      return false
    }
  }
  return { text, accepting: [...messages].filter(accepts) }
})

type Target = (random: Random) => unknown
const targets: Record<string, Target> = {
  ...tokenTargets,
  ...programTargets,
  ...provisioningTargets,
  ...labelTargets,
  ...contentsTargets,
  ...manifestTargets,
  body(random) {
    const { text, accepting } = oneOf(random, readable)
    const desc = oneOf(random, accepting)
    const message = readJson(desc, parseBody(Buffer.from(mutate(random, text), random.below(2) ? 'latin1' : 'utf8')))
    return JSON.parse(jsonText(desc as DescMessage, message as Message))
  },
  request(random) {
    const path = mutate(random, oneOf(random, paths))
    const found = routes.match(oneOf(random, ['GET', 'POST', 'PATCH', 'DELETE', 'PUT']), path)
    if (!found || 'allowed' in found) return found
    const body = Buffer.from(mutate(random, oneOf(random, bodies)))
    const { request, bodyKeys } = readRequest(
      found.entry,
      found.binding,
      found.variables,
      mutate(random, oneOf(random, searches)),
      body,
    )
    resolveMask(found.entry.desc, request, bodyKeys)
    return request
  },
  query(random) {
    const found = routes.match(
      'GET',
      oneOf(random, [
        '/registry/v2/repos',
        '/vulnerabilities/v2/advisories',
        '/iam/v2/identities',
        '/advisory/v2/images/resolvedVulns',
      ]),
    )
    if (!found || 'allowed' in found) throw new Error('the path is gone')
    return readRequest(found.entry, found.binding, [], mutate(random, oneOf(random, searches)), undefined)
  },
  page(random) {
    const pageToken = mutate(random, cipher.encrypt('page-token', Buffer.from('{"v":1}')).toString('base64url'))
    const orderBy = mutate(
      random,
      oneOf(random, ['name desc', 'created_at', 'uid asc', '__proto__', 'constructor desc']),
    )
    const fields = { name: { column: 'name', sort: true as const }, uid: { column: 'uid', sort: true as const } }
    const request = {
      pageSize: random.below(500) - 100,
      pageToken: random.below(2) ? pageToken : '',
      orderBy,
      skip: random.below(9) - 2,
    }
    return readPage(paging, request, { fields, defaultOrder: 'uid' }, null)
  },
  invite(random) {
    const text = random.below(2)
      ? mutate(random, invite.code)
      : Buffer.from(mutate(random, inviteSays)).toString('base64')
    const code = readInviteCode(text)
    if (!code || !isSignedBy(code, invite.publicKey)) return undefined
    // The signature may have several spellings. The signed text must not differ.
    const { sig, ...says } = JSON.parse(inviteSays) as typeof code
    if (Object.entries(says).some(([name, value]) => code[name as keyof typeof code] !== value)) {
      throw new Error(`a changed invite is taken for a genuine one: ${text}`)
    }
    return code
  },
  name(random) {
    const days = `at-2026${10 + random.below(3)}${10 + random.below(19)}`
    const age = `min-${1 + random.below(99)}${oneOf(random, ['h', 'd', 'w'])}`
    const view = oneOf(random, [days, `${days}t120000z`, age, `${age}_hold-1h`, `${days}_${age}`, `${age}_${days}`])
    if (reservedReason(view) === undefined) throw new Error(`${view} is not reserved`)
    // A text that is accepted as the name of an image must be a valid name.
    const path = mutate(random, `acme/team/${view}`)
    if (isRepoPath(path) && !/^[a-z0-9][a-z0-9._/-]*[a-z0-9]$/.test(path))
      throw new Error(`${path} is taken for a path`)
    return reservedReason(mutate(random, view))
  },
  claim: (random) => decodeBits(mutate(random, 'AAAAAAAAAEMAAAAAAAAACAAAAAAAAAAE')),
  time: (random) => parseTimestamp(mutate(random, '2026-01-02T03:04:05.678901234+05:30')),
  readme: (random) =>
    problemOfReadme(mutate(random, '# A\n\n<img src="x" onerror=1> [a](javascript:1) `b` |c|\n|-|\n<!-- d -->\n')),
}

const wanted = values.only === '' ? Object.keys(targets) : values.only.split(',')
for (const name of wanted) if (!Object.hasOwn(targets, name)) throw new Error(`there is no target ${name}`)

const seed = Number(values.seed)
const random = randomFrom(seed)
const until = performance.now() + Number(values.seconds) * 1000
const counts: Record<string, { runs: number; refused: number }> = {}
let failures = 0
for (let round = 0; performance.now() < until && failures < 20; round++) {
  for (const name of wanted) {
    const target = targets[name]!
    counts[name] ??= { runs: 0, refused: 0 }
    const count = counts[name]
    const began = process.cpuUsage()
    try {
      count.runs++
      await target(random)
    } catch (error) {
      if ((error instanceof AppError && error.code !== 'INTERNAL') || error instanceof Unreadable) count.refused++
      else {
        failures++
        console.log(`FAIL ${name} in round ${round} of seed ${seed}`, error)
      }
    }
    const { user, system } = process.cpuUsage(began)
    if ((user + system) / 1000 > slowMs) {
      failures++
      console.log(`SLOW ${name} in round ${round} of seed ${seed}`)
    }
  }
}
await closeManifests()
console.log(`seed ${seed}`)
console.table(counts)
process.exitCode = failures > 0 ? 1 : 0
