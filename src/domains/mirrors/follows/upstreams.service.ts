// Upstreams: registries from which repositories are mirrored. Passwords are stored encrypted, and sent only to their registry.
import type { App, Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { requireGroup } from '#domains/iam/groups/groups.service.ts'
import { listNodes } from '#domains/iam/groups/list-nodes.ts'
import { emit, emitDeleted } from '#domains/outbox/emit.ts'
import { alreadyExists, type FieldViolation, failedPrecondition, found, invalid, limitExceeded } from '#lib/errors.ts'
import { applyPatch, checkFields, type Patch } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import type { Upstream as Asked } from '#lib/registries/registry-client.ts'
import { UpstreamError } from '#lib/registries/upstream-error.ts'
import { newUid, rootOf } from '#lib/uid.ts'
import { countByUpstream, resetChecks } from './follows.store.ts'
import { matchesNames, pathLimits, patternProblems } from './tag-patterns.ts'
import {
  maxAllowed,
  maxPassword,
  maxRequestsPerSecond,
  maxUpstreams,
  toUpstreamResource,
  type Upstream,
  type UpstreamInput,
  upstreamFields,
  upstreamType,
  usualRequestsPerSecond,
} from './upstreams.model.ts'
import * as store from './upstreams.store.ts'

const purpose = 'upstream-password'

export async function getUpstream(call: Call, uid: string): Promise<Upstream> {
  return requireUpstream(call.app.db, uid)
}

export async function requireUpstream(reader: Reader, uid: string): Promise<Upstream> {
  return found(await store.findUpstream(reader, uid), upstreamType, uid)
}

export async function listUpstreams(call: Call, query: ListQuery<store.UpstreamFilter>): Promise<Listed<Upstream>> {
  return listNodes(call, query, store.upstreamList)
}

export async function createUpstream(call: Call, parent: string, input: UpstreamInput): Promise<Upstream> {
  const { password, ...settings } = input
  const requestsPerSecond = settings.requestsPerSecond || usualRequestsPerSecond
  const times = { createTime: call.now, updateTime: call.now }
  const created: Upstream = {
    ...settings,
    requestsPerSecond,
    uid: newUid(parent),
    hasPassword: password !== '',
    ...times,
  }
  checkUpstream(call, { upstream: created, password })
  const sealed = seal(call, password)
  await call.app.db.tx(async (tx) => {
    await requireGroup(tx, parent)
    const used = await store.countUpstreams(tx, rootOf(parent))
    if (used >= maxUpstreams) throw limitExceeded('upstreams', 'upstreams', used, maxUpstreams)
    if (!(await store.insertUpstream(tx, created, sealed))) throw createNameTaken(created.name)
    const resource = toUpstreamResource(created)
    await emit(tx, call, 'control.registry.upstream.created', { subject: created.uid, group: parent, resource })
  })
  call.log.info('upstream created', { uid: created.uid })
  return created
}

/** A change of an upstream may restart any number of mirrors. So the transaction keeps temporary data on disk. */
const ofAnySize = { aside: 'disk' } as const

/** Changes an upstream. If its URL changes, the request must contain the password again. */
export async function updateUpstream(call: Call, uid: string, patch: Patch<UpstreamInput>): Promise<Upstream> {
  const password = patch.paths.includes('password') ? (patch.value.password ?? '') : undefined
  const upstream = await call.app.db.tx(async (tx) => {
    const before = await requireUpstream(tx, uid)
    const { password: _, ...value } = patch.value
    const asked = applyPatch<Upstream>(upstreamFields, before, { paths: patch.paths, value })
    const after: Upstream = {
      ...asked,
      requestsPerSecond: asked.requestsPerSecond || usualRequestsPerSecond,
      hasPassword: password === undefined ? before.hasPassword : password !== '',
      updateTime: call.now,
    }
    checkUpstream(call, { upstream: after, before, password: password ?? '' })
    const isElsewhere = before.url !== after.url || before.username !== after.username
    if (isElsewhere && before.hasPassword && password === undefined) {
      throw invalid({ field: 'password', description: 'is required again with a new url or username' })
    }
    const sealed = password === undefined ? await store.encryptedPasswordOf(tx, uid) : seal(call, password)
    if (!(await store.patchUpstream(tx, before, after, sealed))) throw createNameTaken(after.name)
    // Checks at the former address say nothing about the new address.
    if (before.url !== after.url || before.prefix !== after.prefix) await resetChecks(tx, uid, call.now)
    const event = { subject: uid, resource: toUpstreamResource(after) }
    await emit(tx, call, 'control.registry.upstream.updated', event)
    return after
  }, ofAnySize)
  call.log.info('upstream updated', { uid, paths: patch.paths })
  return upstream
}

export async function deleteUpstream(call: Call, uid: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    const upstream = await requireUpstream(tx, uid)
    const used = await countByUpstream(tx, uid)
    if (used > 0) {
      const mirrors = used === 1 ? 'a mirror uses' : `${used} mirrors use`
      const description = `the upstream cannot be deleted, because ${mirrors} it; end them first: pinfold mirrors delete`
      throw failedPrecondition({ type: 'RESOURCE_IN_USE', subject: uid, description })
    }
    await store.deleteUpstream(tx, upstream)
    await emitDeleted(tx, call, 'control.registry.upstream.deleted', uid)
  })
  call.log.info('upstream deleted', { uid })
}

/** Upstream with its password, and the full path, for the registry client. Throws if the upstream no longer allows the path. */
export async function withPassword(
  app: Pick<App, 'db' | 'cipher'>,
  upstream: Upstream,
  path: string,
): Promise<{ upstream: Asked; path: string }> {
  if (!(await matchesNames(upstream.allow, path))) throw new UpstreamError('not-allowed')
  return { upstream: await readAccess(app, upstream), path: pathAt(upstream, path) }
}

async function readAccess({ db, cipher }: Pick<App, 'db' | 'cipher'>, upstream: Upstream): Promise<Asked> {
  const sealed = await store.encryptedPasswordOf(db, upstream.uid)
  const unsealed = sealed.length === 0 ? Buffer.alloc(0) : cipher.decrypt(purpose, sealed)
  if (!unsealed) throw new Error('the password of an upstream is encrypted under another master key')
  const password = unsealed.toString()
  const { uid, updateTime, url, username, requestsPerSecond } = upstream
  const asker = { key: `${uid} ${updateTime}`, holder: rootOf(uid), requestsPerSecond }
  return { ...asker, origin: new URL(url).origin, username, password }
}

/** Path at the upstream, with its prefix. */
export function pathAt({ prefix }: Pick<Upstream, 'prefix'>, path: string): string {
  return prefix === '' ? path : `${prefix}/${path}`
}

function seal({ app }: Call, password: string): Uint8Array {
  return password === '' ? new Uint8Array() : app.cipher.encrypt(purpose, Buffer.from(password))
}

const explanations: Record<string, string> = {
  insecure: 'must be an https URL, unless the operator sets PINFOLD_ALLOW_INSECURE_UPSTREAMS=on',
  'private-address':
    'must not be a private or loopback address, unless the operator lists it in PINFOLD_UPSTREAMS_PRIVATE',
}

type Checked = { upstream: Upstream; before?: Upstream; password: string }

/**
 * Checks the fields of an upstream. Violations never contain a password. Patterns from before the limits were introduced may
 * exceed them.
 */
function checkUpstream({ app }: Call, { upstream, before, password }: Checked): void {
  const { url, allow, requestsPerSecond } = upstream
  const reason = url === '' ? undefined : app.upstreams.problemOf(url)
  const plain = 'must be an origin, such as https://registry.example.com'
  const problems: FieldViolation[] = reason ? [{ field: 'url', description: explanations[reason] ?? plain }] : []
  const parsed = URL.parse(url)
  if (!reason && parsed && url !== parsed.origin) problems.push({ field: 'url', description: plain })
  if (JSON.stringify(allow) !== JSON.stringify(before?.allow)) {
    problems.push(...patternProblems('allow', allow, { most: maxAllowed, limits: pathLimits }))
  }
  if (!Number.isInteger(requestsPerSecond) || requestsPerSecond < 1 || requestsPerSecond > maxRequestsPerSecond) {
    const description = `must be between 1 and ${maxRequestsPerSecond}`
    problems.push({ field: 'requests_per_second', description })
  }
  if (password.length > maxPassword) {
    problems.push({ field: 'password', description: `must be at most ${maxPassword} characters long` })
  }
  checkFields<Upstream>(upstreamFields, upstream, problems)
}

function createNameTaken(name: string) {
  return alreadyExists(upstreamType, name, 'an upstream of the group has this name')
}
