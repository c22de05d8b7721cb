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

/** 256 random bits that are safe in URLs and cookies. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

export function after(now: string, seconds: number): string {
  return new Date(Date.parse(now) + seconds * 1000).toISOString()
}

/** A new session, without its times and uid. */
export type NewSession = Omit<
  Session,
  'uid' | 'source' | 'userAgent' | 'createTime' | 'lastUsedTime' | 'endTime' | 'expireTime'
> & {
  lifetime: Lifetime
  cookie?: string | undefined
  idToken?: Uint8Array | undefined
  /** Latest end of the session. */
  until?: string
}

/** Starts a session. If the person has too many, the oldest end. */
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

/** Terms that a program requests: a refresh token, and limits below the rights of the person. */
export type ProgramTerms = { refresh: boolean; bound: SessionBound }

/** Limits to store. Undefined if nothing is limited. */
export function boundOf({ scopes, capabilities }: SessionBound): SessionBound | undefined {
  return scopes.length + capabilities.length === 0 ? undefined : { scopes, capabilities }
}

/**
 * Starts a program's session for the person who has approved it in a browser. It has the scope of the browser's session, and if
 * it has roles of external groups, ends no later. It does not count as a recent sign-in, since the person may have been tricked
 * into the approval. Throws UNAUTHENTICATED if the browser's session has ended.
 */
export async function beginFrom(
  tx: Tx,
  work: EventWork,
  { uid }: Session,
  { refresh, bound }: ProgramTerms,
): Promise<Session> {
  const from = await store.findSession(tx, uid)
  if (!from || !isLive(work.app, from)) throw unauthenticated('the session has ended; sign in again')
  const { identityUid, provider, organization, upstreamSid, externalId, act, profile, granted } = from
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
    authTime: 0,
    bound: boundOf(bound),
    lifetime: refresh && !isBrief ? 'refreshed' : 'brief',
    ...(isBrief && { until: from.expireTime }),
  })
}

/** Active session of a browser's cookie. Records its use. */
export async function sessionOfCookie(app: App, cookie: string): Promise<Session | undefined> {
  const session = await store.findByCookie(app.db, hashOf(cookie))
  return session && isLive(app, session) ? noteUse(app, session, lifetimeOf(session)) : undefined
}

/** Session of this uid, if it is active. */
export async function findLiveSession(app: App, uid: string, reader: Reader = app.db): Promise<Session | undefined> {
  const session = await store.findSession(reader, uid)
  return session && isLive(app, session) ? session : undefined
}

function isLive(app: App, session: Session): boolean {
  return session.endTime > app.clock().toISOString() && isStillTrusted(session, app.config.peopleIssuers)
}

/** Lifetime of a session, derived from its longest life. */
export function lifetimeOf({ createTime, expireTime }: Session): Lifetime {
  const most = (Date.parse(expireTime) - Date.parse(createTime)) / 1000
  if (most === lifetimes.refreshed.most) return 'refreshed'
  return most === lifetimes.browser.most ? 'browser' : 'brief'
}

/** Extends the session if its last recorded use is not recent. */
export async function noteUse(app: App, session: Session, lifetime: Lifetime): Promise<Session> {
  const now = app.clock().toISOString()
  if (after(session.lastUsedTime, noteUseSeconds) > now) return session
  const later = after(now, lifetimes[lifetime].idle)
  const endTime = later < session.expireTime ? later : session.expireTime
  await app.db.tx((tx) => store.touchSession(tx, session.uid, now, endTime), { durability: 'later' })
  return { ...session, lastUsedTime: now, endTime }
}

/** Sessions of the caller; in a session of one organization, only those of the organization. */
export async function listSessions(call: Call, query: ListQuery<object>): Promise<Listed<Session>> {
  requireWholeToken(call.caller, 'list sessions')
  const { uid, session } = call.caller
  const organization = session?.organization || undefined
  const trusted = trustedNames(call.app.config.peopleIssuers)
  const place = { identity: uid, trusted, now: call.now, ...(organization && { organization }) }
  return listFrom(call, query, [place], store.sessionList)
}

export async function listOrganizationSessions(
  call: Call,
  organization: string,
  query: ListQuery<object>,
): Promise<Listed<Session>> {
  await requireGroup(call.app.db, organization)
  return listFrom(call, query, [{ organization, trusted: [], now: call.now }], store.sessionList)
}

/** Ends a session of the caller. A narrowed token can end only its own session. */
export async function endSession(call: Call, uid: string): Promise<void> {
  const { caller } = call
  if (uid !== caller.session?.uid) requireWholeToken(caller, 'end other sessions')
  const within = caller.session?.organization ?? ''
  await endFound(call, uid, ({ identityUid, organization }) => {
    return identityUid === caller.uid && (within === '' || organization === within)
  })
}

/** Ends a session of an organization, for the managers of its providers. */
export async function endOrganizationSession(call: Call, organization: string, uid: string): Promise<void> {
  await endFound(call, uid, (session) => session.organization === organization)
}

/** Ends a session. Throws the same NOT_FOUND for sessions of others and for ended ones. */
async function endFound(call: Call, uid: string, isTheirs: (session: Session) => boolean): Promise<void> {
  if (!isUid(uid) || parentOf(uid) === top) throw notFound(sessionType, uid)
  await call.app.db.tx(async (tx) => {
    const session = found(await store.findSession(tx, uid), sessionType, uid)
    if (!isTheirs(session) || session.endTime <= call.now) throw notFound(sessionType, uid)
    await end(tx, call, session, 'ended')
    // A caller who ends another session may not know who is using it.
    if (uid === call.caller.session?.uid) return
    for (const hook of call.app.hooks.sessionEnded) await hook(tx, call.cause, uid)
  })
  call.log.info('session ended', { uid })
}

/** Ends a session with its refresh tokens, and emits the event. */
export async function end(tx: Tx, work: EventWork, session: Session, reason: EndReason): Promise<void> {
  if (!(await store.deleteSession(tx, session.uid))) return
  const { uid, organization } = session
  const resource = toSessionEndResource({ session, reason })
  await emit(tx, work, 'control.iam.session.ended', { subject: uid, group: organization || top, resource })
}

/** Most sessions read at once. */
const perCommit = 200

/** Ends up to 200 sessions of a provider; of one of its own sessions or of one person if `of` names them. */
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

/** Ends all such sessions in one transaction, with few statements for every 200. */
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

/** Active sessions of a person with the same reach, including this one; the oldest first. */
export async function sessionsOfPerson(app: App, { identityUid, organization }: Session): Promise<Session[]> {
  const sessions = await store.sessionsOf(app.db, identityUid, organization)
  return sessions.filter((session) => isLive(app, session))
}

/** ID token of the session's sign-in, as a hint for the provider. Empty for none. */
export async function idTokenOfSession({ db, sealer }: App, uid: string): Promise<string> {
  const sealed = await store.idTokenOf(db, uid)
  return (sealed && sealer.unseal('session-id-token', sealed)?.toString()) ?? ''
}

/** Logout token of a provider. `until` is in seconds since 1970; after that, the token is not accepted anyway. */
export type LogoutToken = { provider: string; jti: string; until: number; of: store.SessionsOf }

/**
 * Ends the sessions that the token names, and records the token. If no session has the `sid`, ends the person's sessions without
 * a recorded `sid`. Returns undefined if the token was used before.
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
 * Ends some of the unused sessions whose provider the settings do not name any more. Returns their number, and the uid after
 * which to continue; undefined after the last.
 */
export async function endSomeUntrusted(
  tx: Tx,
  work: EventWork,
  behind: string,
): Promise<{ ended: number; next: string | undefined }> {
  const before = after(work.cause.now, -untrustedSeconds)
  const sessions = await store.unusedSessions(tx, { after: behind, before, limit: perCommit })
  const untrusted = sessions.filter((one) => !isStillTrusted(one, work.app.config.peopleIssuers))
  for (const session of untrusted) await end(tx, work, session, 'provider-removed')
  return { ended: untrusted.length, next: sessions.length < perCommit ? undefined : sessions.at(-1)!.uid }
}

/** Creates a code that signs one browser in as the operator. */
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

/** Starts a session of the operator. Undefined if the code is invalid or has expired. */
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
      authTime: 0,
      lifetime: 'operator',
      cookie,
    })
  })
}
