// Device authorization (RFC 8628). A program without a browser shows a code. The user enters the code in a browser and approves
// the program.
import { hash, randomInt } from 'node:crypto'
import type { App, Work } from '#app.ts'
import { hashOf } from '#lib/crypto/secret-hash.ts'
import { invalid, tooMany } from '#lib/errors.ts'
import { networkOf } from '#lib/net/source-address.ts'
import * as store from './own-grants.store.ts'
import { deviceSeconds, maxAsked, maxDevices, pollSeconds, type Session } from './sessions.model.ts'
import { after, beginFrom, findLiveSession, newSecret, type ProgramTerms } from './sessions.service.ts'

export type { DeviceCode } from './own-grants.store.ts'

type SignInWork = Pick<Work, 'app' | 'cause'>

/** Letters of user codes. There are no vowels, so that no code is a word, and no letters that look alike. */
const letters = 'BCDFGHJKLMNPQRSTVWXZ'
const userCodeLength = 8

function newUserCode(): string {
  return Array.from({ length: userCodeLength }, () => letters[randomInt(letters.length)]).join('')
}

/** User code as typed by a person, in its stored form. Undefined if the text cannot be a code. */
export function readUserCode(typed: string): string | undefined {
  if (typed.length > 64) return undefined
  const code = typed.toUpperCase().replace(/[\s\p{Pd}]/gu, '')
  return code.length === userCodeLength && [...code].every((one) => letters.includes(one)) ? code : undefined
}

function userHash(code: string): string {
  return hash('sha256', `device ${code}`, 'base64url')
}

export type NewDeviceCode = { deviceCode: string; userCode: string; expiresIn: number; interval: number }

/**
 * Creates a device code. Throws RESOURCE_EXHAUSTED if too many codes of the network, or in total, wait for an answer. At the
 * total limit, first tries to delete the oldest code that was never polled. Throws INVALID_ARGUMENT if the request is too long.
 */
export async function createDeviceCode(
  { app, cause }: SignInWork,
  { clientId, asked }: { clientId: string; asked: object },
): Promise<NewDeviceCode> {
  const { now, source, userAgent } = cause
  const network = networkOf(source)
  const text = JSON.stringify(asked)
  if (text.length > maxAsked) throw invalid({ field: 'scope', description: 'is too long' })
  const [deviceCode, userCode] = [newSecret(), newUserCode()]
  await app.db.tx(async (tx) => {
    const waiting = await store.countDeviceCodes(tx, network, now)
    const isCrowded = waiting.ofNetwork >= maxDevices.ofNetwork || waiting.ofSite >= maxDevices.ofSite
    if (isCrowded || (waiting.all >= maxDevices.all && !(await store.dropForgottenDevice(tx)))) {
      throw tooMany('too many device sign-ins are waiting; retry later', 60)
    }
    await store.insertDeviceCode(tx, {
      deviceHash: hashOf(deviceCode),
      userHash: userHash(userCode),
      clientId,
      asked: text,
      network,
      source,
      userAgent: userAgent.slice(0, 256).toWellFormed(),
      answer: '',
      sessionUid: '',
      pollSeconds: pollSeconds.first,
      polledTime: '',
      createTime: now,
      expireTime: after(now, deviceSeconds),
    })
  })
  return { deviceCode, userCode, expiresIn: deviceSeconds, interval: pollSeconds.first }
}

/** Program with this user code that waits for an answer. Undefined if the code was answered, has expired or is unknown. */
export async function findWaiting(app: App, userCode: string): Promise<store.DeviceCode | undefined> {
  const found = await store.findByUserCode(app.db, userHash(userCode))
  return found && found.answer === '' && found.expireTime > app.clock().toISOString() ? found : undefined
}

/** Approves or refuses a program, as the person of the session. Returns false if the program is not waiting. */
export async function answerDevice(
  { app, cause }: SignInWork,
  session: Session,
  userCode: string,
  approve: boolean,
): Promise<boolean> {
  const answer = approve ? 'approved' : 'refused'
  const given = { answer, sessionUid: session.uid, now: cause.now } as const
  return app.db.tx((tx) => store.answerDevice(tx, userHash(userCode), given))
}

export type Polled =
  | { state: 'unknown' | 'expired' | 'waiting' | 'too often' | 'refused' }
  | { state: 'approved'; session: Session; asked: unknown }

/**
 * State of a device code. At the first poll after the approval, starts a session of the program. If the session that approved the
 * program has ended, the program is refused.
 */
export async function pollDevice(
  work: SignInWork,
  { deviceCode, clientId }: { deviceCode: string; clientId: string },
  termsOf: (asked: unknown) => ProgramTerms,
): Promise<Polled> {
  const { app, cause } = work
  const deviceHash = hashOf(deviceCode)
  const seen = await store.findByDeviceCode(app.db, deviceHash)
  const from = seen?.answer === 'approved' ? await findLiveSession(app, seen.sessionUid) : undefined
  return app.db.tx(async (tx): Promise<Polled> => {
    const found = await store.findByDeviceCode(tx, deviceHash)
    if (!found || found.clientId !== clientId) return { state: 'unknown' }
    if (found.expireTime <= cause.now) return { state: 'expired' }
    const asked: unknown = JSON.parse(found.asked)
    if (found.answer === 'approved' && from && (await store.takeDeviceCode(tx, deviceHash))) {
      const session = await beginFrom(tx, work, from, termsOf(asked))
      return { state: 'approved', session, asked }
    }
    if (found.answer === 'refused' || (found.answer === 'approved' && seen?.answer === 'approved')) {
      await store.takeDeviceCode(tx, deviceHash)
      return { state: 'refused' }
    }
    // One second is tolerated, since requests take different times to arrive.
    const isTooOften = found.polledTime !== '' && cause.now < after(found.polledTime, found.pollSeconds - 1)
    const wait = isTooOften ? Math.min(pollSeconds.most, found.pollSeconds + pollSeconds.more) : found.pollSeconds
    await store.notePoll(tx, deviceHash, cause.now, wait)
    return { state: isTooOften ? 'too often' : 'waiting' }
  })
}
