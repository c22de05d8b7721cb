// Requests for access. A person finds the organization that has the domain of the person's email address, and asks to join it. If
// no organization is found, the error is the same for every reason, so that it reveals nothing.
import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { found, invalid, notFound, tooMany } from '#lib/errors.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { isUid, newUid, parentOf, rootOf, top } from '#lib/uid.ts'
import { type Group, groupType, ready } from '../groups/groups.model.ts'
import { findOrganization, requireGroup } from '../groups/groups.service.ts'
import { listFrom } from '../groups/list-nodes.ts'
import { joinOrganization } from '../roles/consent.service.ts'
import { toBindingResource } from '../roles/role-bindings.model.ts'
import { findBinding, insertBinding } from '../roles/role-bindings.store.ts'
import { requireGrantableRole } from '../roles/roles.service.ts'
import {
  type AccessRequest,
  accessRequestType,
  companyDomain,
  maxWaitingRequests,
  requestLife,
  toAccessRequestResource,
  toAnsweredRequestResource,
} from './access-requests.model.ts'
import * as store from './access-requests.store.ts'

/**
 * Domain of the caller's verified email address, if the settings trust the provider that verified it. Undefined for other
 * callers, for narrowed tokens, and for sessions that are limited to one organization.
 */
function verifiedDomainOf({ caller }: Call): string | undefined {
  const { uid, operator, session, token } = caller
  const isPerson = !operator && uid !== '' && parentOf(uid) === top && session?.organization === ''
  if (!isPerson || token?.narrowed || token?.verifiedEmail === undefined) return undefined
  return companyDomain(token.verifiedEmail)
}

/**
 * True if `lookupGroup` can search by the domain of the caller's email address. Does not reveal whether such an organization
 * exists.
 */
export function checkEligibility(call: Call): boolean {
  return verifiedDomainOf(call) !== undefined
}

/**
 * Verified organization whose name is the domain of the caller's email address. Throws NOT_FOUND if there is none. The error is
 * the same for every reason.
 */
export async function lookupGroup(call: Call): Promise<Group> {
  call.app.limits.check('identity', `lookup ${call.caller.uid}`)
  const group = await ownOrganization(call)
  if (!group) throw notFound(groupType, '-')
  return group
}

async function ownOrganization(call: Call): Promise<Group | undefined> {
  const domain = verifiedDomainOf(call)
  const group = domain === undefined ? undefined : await findOrganization(call.app.db, domain)
  return group?.verified && group.status === ready ? group : undefined
}

/**
 * Creates an access request of the caller, with an event for members who can invite. Throws NOT_FOUND if the group is not the one
 * that `lookupGroup` returns. Throws RESOURCE_EXHAUSTED within a day after the last request, and within a week after a refusal.
 */
export async function requestAccess(call: Call, groupUid: string): Promise<void> {
  if (groupUid === '') throw invalid({ field: 'group_uid', description: 'is required' })
  const { app, caller, now } = call
  app.limits.check('identity', `lookup ${caller.uid}`)
  const group = await ownOrganization(call)
  if (!group || group.uid !== groupUid) throw notFound(groupType, isUid(groupUid) ? groupUid : '-')
  await app.db.tx(async (tx) => {
    await store.sweepRequests(tx, now)
    const before = await store.findRequestOf(tx, group.uid, caller.uid)
    checkWaitingTime(before, now)
    const waiting = await store.requestList.count(tx, [{ organization: group.uid, now }])
    if (!before && waiting >= maxWaitingRequests)
      throw tooMany('too many access requests are waiting in this organization; ask an owner to answer them', 60 * 60)
    const request: AccessRequest = {
      uid: before?.uid ?? newUid(group.uid),
      identityUid: caller.uid,
      name: caller.token?.upstream?.name || '',
      email: caller.token!.verifiedEmail!,
      state: 'waiting',
      createTime: before?.createTime ?? now,
      askTime: now,
      expireTime: after(now, requestLife.waits),
    }
    await store.putRequest(tx, request)
    const event = { subject: request.uid, group: group.uid, resource: toAccessRequestResource(request) }
    // The caller is not a member yet, so the event leaves out the caller's IP address and sign-in.
    const listUnannounced = { app, cause: { ...call.cause, act: undefined, source: '', userAgent: '' } }
    await emit(tx, listUnannounced, 'control.iam.access_request.created', event)
  })
  call.log.info('access requested', { group: group.uid })
}

function checkWaitingTime(before: AccessRequest | undefined, now: string): void {
  if (!before) return
  const { state, askTime, expireTime } = before
  const again = state === 'waiting' ? after(askTime, requestLife.again) : expireTime
  if (again <= now) return
  const seconds = Math.ceil((Date.parse(again) - Date.parse(now)) / 1000)
  throw tooMany('you requested access a short time ago; wait before you request it again', seconds)
}

function after(time: string, seconds: number): string {
  return new Date(Date.parse(time) + seconds * 1000).toISOString()
}

export async function listAccessRequests(
  call: Call,
  organization: string,
  query: ListQuery<object>,
): Promise<Listed<AccessRequest>> {
  await requireGroup(call.app.db, organization)
  return listFrom(call, query, [{ organization, now: call.now }], store.requestList)
}

/**
 * Approves an access request: accepts the person's pending bindings and adds one with the role. Returns the uid of the new
 * binding. Returns an empty text if the person had the role already.
 */
export async function approveAccessRequest(call: Call, uid: string, roleUid: string): Promise<string> {
  if (!isUid(roleUid)) throw invalid({ field: 'role_uid', description: 'is not a uid' })
  const organization = rootOf(uid)
  const binding = await call.app.db.tx(async (tx) => {
    const request = await requireWaiting(tx, call, uid)
    await requireGrantableRole(tx, call, roleUid, organization)
    if (!(await store.deleteWaiting(tx, uid))) throw notFound(accessRequestType, uid)
    await joinOrganization(tx, call, organization, request.identityUid, call.caller.uid)
    const made = await bind(tx, call, organization, request.identityUid, roleUid)
    await emitAnswer(tx, call, request, roleUid)
    return made
  })
  call.log.info('access request approved', { uid, binding })
  return binding
}

async function bind(tx: Tx, call: Call, group: string, identityUid: string, roleUid: string): Promise<string> {
  const uid = newUid(group)
  const made = { accepted: true, createdBy: call.caller.uid, createTime: call.now, updateTime: call.now }
  if (!(await insertBinding(tx, { uid, identityUid, roleUid, ...made }))) return ''
  const resource = toBindingResource((await findBinding(tx, uid))!)
  await emit(tx, call, 'iam.rolebindings.created', { subject: uid, group, resource })
  return uid
}

/** Refuses the request. The person is not notified. */
export async function refuseAccessRequest(call: Call, uid: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    const request = await requireWaiting(tx, call, uid)
    if (!(await store.refuseRequest(tx, uid, after(call.now, requestLife.afterRefusal)))) {
      throw notFound(accessRequestType, uid)
    }
    await emitAnswer(tx, call, request, '')
  })
  call.log.info('access request refused', { uid })
}

/**
 * Removes name and email address of a deleted person from the person's access requests. The requests stay, since a new account of
 * the same person has the same uid. So the waiting time before the next request still applies.
 */
export async function withdrawRequests(tx: Tx, identity: string): Promise<void> {
  for (const request of await store.requestsOf(tx, identity)) {
    const { state, askTime, expireTime } = request
    const gone = state === 'waiting' ? after(askTime, requestLife.again) : expireTime
    await store.putRequest(tx, {
      ...request,
      name: '',
      email: '',
      state: state === 'waiting' ? 'withdrawn' : state,
      expireTime: gone,
    })
  }
}

async function requireWaiting(tx: Tx, call: Call, uid: string): Promise<AccessRequest> {
  const request = found(await store.findRequest(tx, uid), accessRequestType, uid)
  if (request.state !== 'waiting' || request.expireTime <= call.now) throw notFound(accessRequestType, uid)
  return request
}

async function emitAnswer(tx: Tx, call: Call, request: AccessRequest, roleUid: string): Promise<void> {
  const event = {
    subject: request.uid,
    resource: toAnsweredRequestResource({ request, roleUid }),
  }
  await emit(tx, call, 'control.iam.access_request.answered', event)
}
