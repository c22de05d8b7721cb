import { randomBytes } from 'node:crypto'
import type { App, Call, Work } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { hashOf } from '#lib/crypto/secret-hash.ts'
import { found, notFound, unauthenticated } from '#lib/errors.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { isUid, newUid, parentOf, top } from '#lib/uid.ts'
import { requireWholeToken } from '../access/requirements.ts'
import { requireGroup } from '../groups/groups.service.ts'
import { listFrom } from '../groups/list-nodes.ts'
import {
  consoleCodeSeconds,
  type EndReason,
  isStillTrusted,
  type Lifetime,
  lifetimes,
  maxSessions,
  noteUseSeconds,
  type Session,
  type SessionBound,
  type SignIn,
  sessionType,
  toSessionEndResource,
  toSignInResource,
  trustedNames,
  untrustedSeconds,
} from './sessions.model.ts'
import * as store from './sessions.store.ts'
import { insertConsoleCode, noteLogout, takeConsoleCode } from './sign-ins.store.ts'

type EventWork = Pick<Work, 'app' | 'cause'>

/** Random secret of 256 bits that is safe in URLs and cookies. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

export function after(now: string, seconds: number): string {
  return new Date(Date.parse(now) + seconds * 1000).toISOString()
}

/** Values of a new session. Uid and times are added when it starts. */
export type NewSession = Omit<
  Session,
  'uid' | 'source' | 'userAgent' | 'createTime' | 'lastUsedTime' | 'endTime' | 'expireTime'
> & {
  lifetime: Lifetime
  cookie?: string | undefined
  idToken?: Uint8Array | undefined
  /** The session ends at this time at the latest. */
  until?: string
}

/** Starts a session. If the person has the maximum number of sessions, ends the oldest ones. */
export async function beginSession(
  tx: Tx,
  work: EventWork,
  { lifetime, cookie, idToken, until = after(work.cause.now, lifetimes[lifetime].most), ...begun }: NewSession,
  groups: Omit<SignIn, 'session'> = { groupRoles: [], groupsLeftOut: false },
): Promise<Session> {
  const { now, source, userAgent } = work.cause
  const { idle, most } = lifetimes[lifetime]
  const [ends, expires] = [after(now, idle), after(now, most)]
  const session: Session = {
    ...begun,
    uid: newUid(begun.identityUid),
    source,
    userAgent: userAgent.slice(0, 256).toWellFormed(),
    createTime: now,
    lastUsedTime: now,
    endTime: ends < until ? ends : until,
    expireTime: expires < until ? expires : until,
  }
  const others = await store.sessionsOf(tx, session.identityUid, session.organization)
  for (const old of others.slice(0, Math.max(0, others.length - maxSessions + 1))) await end(tx, work, old, 'too-many')
  await store.insertSession(tx, session, {
    cookieHash: cookie === undefined ? null : hashOf(cookie),
    idToken: idToken ?? null,
  })
  const event = {
    subject: session.uid,
    group: session.organization || top,
    resource: toSignInResource({ session, ...groups }),
  }
  const cause = { ...work.cause, actor: session.identityUid, act: session.act }
  await emit(tx, { app: work.app, cause }, 'control.iam.session.started', event)
  return session
}

/** Refresh token and limits that a program requests for its session. */
export type ProgramTerms = { refresh: boolean; bound: SessionBound }

/** Limits to store with the session. Undefined if there are none. */
export function boundOf({ scopes, capabilities }: SessionBound): SessionBound | undefined {
  return scopes.length + capabilities.length === 0 ? undefined : { scopes, capabilities }
}

/**
 * Starts a session of a program that a person has approved in a browser. The new session is limited to the same organization as
 * the browser's session. With roles from external groups, it ends no later than the browser's session. It is not a recent
 * sign-in, since the person may have been tricked into the approval. Throws UNAUTHENTICATED if the browser's session has ended.
 */
export async function beginFrom(
  tx: Tx,
  work: EventWork,
  { uid }: Session,
  { refresh, bound }: ProgramTerms,
): Promise<Session> {
  const from = await store.findSession(tx, uid)
  if (!from || !isLive(work.app, from)) throw unauthenticated('the session has ended; sign in again')
  const { identityUid, provider, organization, upstreamSid, externalId, act, profile, granted, groupRoles } = from
  const isBrief = granted.size > 0
  return beginSession(tx, work, {
    identityUid,
    kind: 'client',
    provider,
    organization,
    upstreamSid,
    externalId,
    act,
    profile,
    granted,
    groupRoles,
    authTime: 0,
    bound: boundOf(bound),
    lifetime: refresh && !isBrief ? 'refreshed' : 'brief',
    ...(isBrief && { until: from.expireTime }),
  })
}

/** Active session of a cookie. Undefined if there is none. Records the use. */
export async function sessionOfCookie(app: App, cookie: string): Promise<Session | undefined> {
  const session = await store.findByCookie(app.db, hashOf(cookie))
  return session && isLive(app, session) ? noteUse(app, session, lifetimeOf(session)) : undefined
}

/** Active session of this uid. Undefined if there is none. */
export async function findLiveSession(app: App, uid: string, reader: Reader = app.db): Promise<Session | undefined> {
  const session = await store.findSession(reader, uid)
  return session && isLive(app, session) ? session : undefined
}

function isLive(app: App, session: Session): boolean {
  return session.endTime > app.clock().toISOString() && isStillTrusted(session, app.config.oidcProviders)
}

/** Kind of lifetime of a session, found by the session's longest duration. */
export function lifetimeOf({ createTime, expireTime }: Session): Lifetime {
  const most = (Date.parse(expireTime) - Date.parse(createTime)) / 1000
  if (most === lifetimes.refreshed.most) return 'refreshed'
  return most === lifetimes.browser.most ? 'browser' : 'brief'
}

/** Records the use and extends the session, unless a recent use is recorded. */
export async function noteUse(app: App, session: Session, lifetime: Lifetime): Promise<Session> {
  const now = app.clock().toISOString()
  if (after(session.lastUsedTime, noteUseSeconds) > now) return session
  const later = after(now, lifetimes[lifetime].idle)
  const endTime = later < session.expireTime ? later : session.expireTime
  await app.db.tx((tx) => store.touchSession(tx, session.uid, now, endTime), { durability: 'later' })
  return { ...session, lastUsedTime: now, endTime }
}

/**
 * Active sessions of the caller. If the caller's session is limited to an organization, only the sessions of this organization.
 */
export async function listSessions(call: Call, query: ListQuery<object>): Promise<Listed<Session>> {
  requireWholeToken(call.caller, 'list sessions')
  const { uid, session } = call.caller
  const organization = session?.organization || undefined
  const trusted = trustedNames(call.app.config.oidcProviders)
  const scope = { identity: uid, trusted, now: call.now, ...(organization && { organization }) }
  return listFrom(call, query, [scope], store.sessionList)
}

export async function listOrganizationSessions(
  call: Call,
  organization: string,
  query: ListQuery<object>,
): Promise<Listed<Session>> {
  await requireGroup(call.app.db, organization)
  return listFrom(call, query, [{ organization, trusted: [], now: call.now }], store.sessionList)
}

/** Ends a session of the caller. A narrowed token can end only the session that it belongs to. */
export async function endSession(call: Call, uid: string): Promise<void> {
  const { caller } = call
  if (uid !== caller.session?.uid) requireWholeToken(caller, 'end other sessions')
  const within = caller.session?.organization ?? ''
  await endFound(call, uid, ({ identityUid, organization }) => {
    return identityUid === caller.uid && (within === '' || organization === within)
  })
}

/** Ends a session that is limited to this organization. Used by managers of the organization's providers. */
export async function endOrganizationSession(call: Call, organization: string, uid: string): Promise<void> {
  await endFound(call, uid, (session) => session.organization === organization)
}

/** Ends a session if `isTheirs` is true for it. Otherwise throws NOT_FOUND, as for a session that does not exist or has ended. */
async function endFound(call: Call, uid: string, isTheirs: (session: Session) => boolean): Promise<void> {
  if (!isUid(uid) || parentOf(uid) === top) throw notFound(sessionType, uid)
  await call.app.db.tx(async (tx) => {
    const session = found(await store.findSession(tx, uid), sessionType, uid)
    if (!isTheirs(session) || session.endTime <= call.now) throw notFound(sessionType, uid)
    await end(tx, call, session, 'ended')
    // A person who ends another session may suspect misuse. So hooks also revoke the push tokens that were created in it.
    if (uid === call.caller.session?.uid) return
    for (const hook of call.app.hooks.sessionEnded) await hook(tx, call.cause, uid)
  })
  call.log.info('session ended', { uid })
}

/** Ends a session with its refresh tokens, and emits an event. Does nothing if the session was already deleted. */
export async function end(tx: Tx, work: EventWork, session: Session, reason: EndReason): Promise<void> {
  if (!(await store.deleteSession(tx, session.uid))) return
  const { uid, organization } = session
  const resource = toSessionEndResource({ session, reason })
  await emit(tx, work, 'control.iam.session.ended', { subject: uid, group: organization || top, resource })
}

/** Most sessions that one query reads. */
const perCommit = 200

/** Ends up to 200 sessions of a provider. `of` can limit them to one `sid` or one person. */
async function endSomeOfProvider(
  tx: Tx,
  work: EventWork,
  provider: string,
  of: store.SessionsOf,
  reason: EndReason,
): Promise<number> {
  const sessions = await store.sessionsOfProvider(tx, provider, of, perCommit)
  for (const session of sessions) await end(tx, work, session, reason)
  return sessions.length
}

/** Ends all sessions of a provider in one transaction. `of` can limit them. Reads 200 sessions with each query. */
export async function endAllOfProvider(
  tx: Tx,
  work: EventWork,
  provider: string,
  of: store.SessionsOf,
  reason: EndReason,
): Promise<number> {
  for (let count = 0; ; ) {
    const ended = await endSomeOfProvider(tx, work, provider, of, reason)
    count += ended
    if (ended < perCommit) return count
  }
}

/** Ends all sessions of a person. */
export async function endAllOfPerson(tx: Tx, work: EventWork, identity: string, reason: EndReason): Promise<void> {
  for (;;) {
    const sessions = await store.sessionsOfIdentity(tx, identity, perCommit)
    for (const session of sessions) await end(tx, work, session, reason)
    if (sessions.length < perCommit) return
  }
}

/** Active sessions of the same person with the same limit to an organization, the oldest first. The given session is included. */
export async function sessionsOfPerson(app: App, { identityUid, organization }: Session): Promise<Session[]> {
  const sessions = await store.sessionsOf(app.db, identityUid, organization)
  return sessions.filter((session) => isLive(app, session))
}

/** ID token of the sign-in that started the session, as a hint for sign-out at the provider. Empty if there is none. */
export async function idTokenOfSession({ db, cipher }: App, uid: string): Promise<string> {
  const sealed = await store.idTokenOf(db, uid)
  return (sealed && cipher.decrypt('session-id-token', sealed)?.toString()) ?? ''
}

/**
 * Logout token of a provider. `until` is in seconds since 1970: until then, a second use must be detected. Later, the token is
 * too old.
 */
export type LogoutToken = { provider: string; jti: string; until: number; of: store.SessionsOf }

/**
 * Ends the sessions that a logout token names, and records that the token was used. If no session has the `sid`, ends the
 * person's sessions that were stored without a `sid`. Returns undefined if the token was used before.
 */
export async function endByLogoutToken(
  work: EventWork,
  { provider, jti, until, of }: LogoutToken,
): Promise<number | undefined> {
  return work.app.db.tx(async (tx) => {
    if (!(await noteLogout(tx, provider, hashOf(jti), new Date(until * 1000).toISOString()))) return undefined
    const ended = await endAllOfProvider(tx, work, provider, of, 'provider')
    if (ended > 0 || of.sid === undefined || of.identity === undefined) return ended
    return endAllOfProvider(tx, work, provider, { ...of, sid: '' }, 'provider')
  })
}

/**
 * Ends unused sessions whose provider was removed from the settings, from a batch of sessions. Returns the number of ended
 * sessions, and the last uid of the batch. The uid is undefined after the last batch.
 */
export async function endSomeUntrusted(
  tx: Tx,
  work: EventWork,
  behind: string,
): Promise<{ ended: number; next: string | undefined }> {
  const before = after(work.cause.now, -untrustedSeconds)
  const sessions = await store.unusedSessions(tx, { after: behind, before, limit: perCommit })
  const untrusted = sessions.filter((one) => !isStillTrusted(one, work.app.config.oidcProviders))
  for (const session of untrusted) await end(tx, work, session, 'provider-removed')
  return { ended: untrusted.length, next: sessions.length < perCommit ? undefined : sessions.at(-1)!.uid }
}

/** Creates a code with which one browser can sign in as the operator. */
export async function createConsoleCode({
  app,
  log,
}: Pick<Work, 'app' | 'log'>): Promise<{ code: string; expireTime: string }> {
  const code = newSecret()
  const expireTime = after(app.clock().toISOString(), consoleCodeSeconds)
  await app.db.tx((tx) => insertConsoleCode(tx, hashOf(code), expireTime))
  log.info('console code created')
  return { code, expireTime }
}

/** Starts a session of the operator. Returns undefined if the code is unknown or has expired. */
export async function enterByCode(
  work: EventWork,
  operator: string,
  { code, cookie }: { code: string; cookie: string },
): Promise<Session | undefined> {
  return work.app.db.tx(async (tx) => {
    if (!(await takeConsoleCode(tx, hashOf(code), work.cause.now))) return undefined
    return beginSession(tx, work, {
      identityUid: operator,
      kind: 'browser',
      provider: '',
      organization: '',
      upstreamSid: '',
      externalId: '',
      act: {},
      profile: { name: '', picture: '', email: '', emailVerified: false },
      granted: new Map(),
      groupRoles: [],
      authTime: 0,
      lifetime: 'operator',
      cookie,
    })
  })
}
