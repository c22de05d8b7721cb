// Push tokens: methods for their creators, and for managers of a group.
import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { newPushSecret, newUserName } from '#lib/crypto/push-secret.ts'
import { hashOf } from '#lib/crypto/secret-hash.ts'
import {
  found,
  invalid,
  limitExceeded,
  notFound,
  permissionDenied,
  refuseIfAny,
  tooMany,
  unauthenticated,
} from '#lib/errors.ts'
import { violationsOf } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { isAtOrBelow, isUid, newUid, parentOf, rootOf, top } from '#lib/uid.ts'
import { capabilityNumber } from '../access/capabilities.ts'
import { requireWholeToken } from '../access/requirements.ts'
import { requireGroup } from '../groups/groups.service.ts'
import { listFrom } from '../groups/list-nodes.ts'
import { requireLasting } from '../roles/grants.ts'
import { after, findLiveSession } from '../sessions/sessions.service.ts'
import { removePushToken } from './push-token-use.service.ts'
import { life, most, type PushToken, pushTokenFields, pushTokenType, toPushTokenResource } from './push-tokens.model.ts'
import * as store from './push-tokens.store.ts'

const needs = {
  pull: ['manifest.list', 'tag.list', 'repo.blobs.get'].map(capabilityNumber),
  push: ['manifest.create', 'tag.create'].map(capabilityNumber),
  workload: [capabilityNumber('identity.create')],
}

/** `seconds` is the life of the token. Undefined for the default life. */
export type NewPushToken = {
  group: string
  name: string
  push: boolean
  repos: readonly string[]
  seconds: number | undefined
}

/**
 * Creates a push token for the caller. The caller's bindings must grant the capabilities of the token. A workload also needs
 * `identity.create`, since it gets a password. The secret is returned only here.
 */
export async function createPushToken(call: Call, input: NewPushToken): Promise<{ token: PushToken; secret: string }> {
  const { app, caller, now } = call
  const { group, name, push, repos, seconds = life.usual } = input
  requireWholeToken(caller, 'create push tokens')
  checkInput(input, seconds)
  const numbers = [...needs.pull, ...(push ? needs.push : [])]
  if (!caller.rights.holds(group, numbers)) throw permissionDenied()
  const isWorkload = !caller.operator && parentOf(caller.uid) !== top
  if (isWorkload && !caller.rights.holds(group, needs.workload)) {
    throw permissionDenied(
      'service accounts need the capability identity.create in the group to create push tokens for it',
    )
  }
  for (const hook of app.hooks.requireRepos) await hook(app.db, repos)

  const secret = newPushSecret()
  const token = {
    uid: newUid(caller.uid),
    identityUid: caller.uid,
    name,
    group,
    repos: [...new Set(repos)],
    push,
    createTime: now,
    expireTime: after(now, seconds),
    lastUsedTime: '',
    lastUsedFrom: '',
  }
  const made = await app.db.tx(async (tx) => {
    await requireGroup(tx, group)
    await requireLasting(tx, call.caller, group, numbers, 'a push token needs them')
    await requireCapacity(tx, token)
    const created = { ...token, ...(await vouchedBySession(tx, call)), userName: await freeUserName(tx) }
    await store.insertPushToken(tx, created, hashOf(secret))
    await emit(tx, call, 'control.iam.push_token.created', {
      subject: created.uid,
      group,
      resource: toPushTokenResource(created),
    })
    return created
  })
  call.log.info('push token created', { uid: made.uid })
  return { token: made, secret }
}

function checkInput({ group, name, repos }: NewPushToken, seconds: number): void {
  const problems = violationsOf<Pick<PushToken, 'name'>>({ name: pushTokenFields.name }, { name })
  if (seconds < life.least || seconds > life.most) {
    problems.push({ field: 'ttl', description: `must be from ${life.least}s to ${life.most}s` })
  }
  if (repos.length > most.repos)
    throw invalid({ field: 'repo_uids', description: `must have at most ${most.repos} uids` })
  for (const [i, uid] of repos.entries()) {
    const inside = isUid(uid) && uid !== group && isAtOrBelow(uid, group)
    if (!inside) problems.push({ field: `repo_uids[${i}]`, description: 'is not the uid of a repository in the group' })
  }
  refuseIfAny(problems)
}

type VouchedFields = Pick<PushToken, 'provider' | 'organization' | 'externalId' | 'issuer' | 'sessionUid'>

/**
 * Sign-in provider and session of the caller. They are stored so that the token can be revoked with them. Throws UNAUTHENTICATED
 * if the session has ended.
 */
async function vouchedBySession(tx: Tx, { app, caller }: Call): Promise<VouchedFields> {
  const uid = caller.session?.uid
  if (!uid) {
    const issuer = uid === '' ? (caller.token?.act?.iss ?? '') : ''
    return { provider: '', organization: '', externalId: '', issuer, sessionUid: '' }
  }
  const session = await findLiveSession(app, uid, tx)
  if (!session) throw unauthenticated('the session of the token has ended; sign in again')
  const { provider, organization, externalId, act } = session
  return { provider, organization, externalId, issuer: act.iss ?? '', sessionUid: uid }
}

type NewTokenFields = Pick<PushToken, 'identityUid' | 'group' | 'createTime'>

async function requireCapacity(tx: Tx, { identityUid, group, createTime }: NewTokenFields): Promise<void> {
  const { ofMaker, ofOrganization } = await store.countLive(tx, identityUid, rootOf(group), createTime)
  if (ofMaker >= most.ofMaker) {
    throw tooMany(`you have reached the limit of ${most.ofMaker} push tokens; revoke one that you do not use`, 60)
  }
  if (ofOrganization >= most.ofOrganization) {
    throw limitExceeded('push_tokens', 'push tokens', ofOrganization, most.ofOrganization)
  }
}

async function freeUserName(tx: Tx): Promise<string> {
  for (;;) {
    const userName = newUserName()
    if (!(await store.findByUserName(tx, userName))) return userName
  }
}

/** Push tokens of the caller. */
export async function listPushTokens(call: Call, query: ListQuery<object>): Promise<Listed<PushToken>> {
  const { caller } = call
  requireWholeToken(caller, 'list push tokens')
  return listAt(call, query, { identity: caller.uid, organization: caller.session?.organization ?? '' })
}

/** Push tokens of all creators in a group and everything below it. */
export async function listGroupPushTokens(
  call: Call,
  group: string,
  query: ListQuery<object>,
): Promise<Listed<PushToken>> {
  await requireGroup(call.app.db, group)
  return listAt(call, query, { group })
}

function listAt(call: Call, query: ListQuery<object>, scope: store.PushTokenScope): Promise<Listed<PushToken>> {
  return listFrom(call, query, [scope], store.pushTokenList)
}

/** Revokes a push token of the caller. Throws NOT_FOUND for tokens of other creators. */
export async function revokePushToken(call: Call, uid: string): Promise<void> {
  requireWholeToken(call.caller, 'revoke push tokens')
  const { uid: identity, session } = call.caller
  const organization = session?.organization ?? ''
  const isOwn = (token: PushToken) =>
    token.identityUid === identity && (organization === '' || rootOf(token.group) === organization)
  await revoke(call, uid, isOwn)
}

/** Revokes a push token of any creator. Throws NOT_FOUND unless the token is for this group or for a group below it. */
export async function revokeGroupPushToken(call: Call, group: string, uid: string): Promise<void> {
  await revoke(call, uid, (token) => isAtOrBelow(token.group, group))
}

async function revoke(call: Call, uid: string, isMeant: (token: PushToken) => boolean): Promise<void> {
  if (!isUid(uid)) throw invalid({ field: 'uid', description: 'is not a uid' })
  await call.app.db.tx(async (tx) => {
    const token = found(await store.findPushToken(tx, uid), pushTokenType, uid)
    if (!isMeant(token) || !(await removePushToken(tx, call, token, 'revoked'))) throw notFound(pushTokenType, uid)
  })
  call.log.info('push token revoked', { uid })
}
