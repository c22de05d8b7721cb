import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import { domainPattern } from '../groups/groups.model.ts'

/**
 * A person's request to join an organization. The name of the organization is the domain of the person's verified email address.
 */
export type AccessRequest = {
  /** Uid, below the uid of the organization. */
  uid: string
  identityUid: string
  /** Name and verified address of the person, from the sign-in provider. */
  name: string
  email: string
  /** `withdrawn` if the account was deleted while the request was waiting. */
  state: 'waiting' | 'refused' | 'withdrawn'
  createTime: string
  /** Time of the person's latest request. */
  askTime: string
  /** If waiting: the time at which the request expires. If refused or withdrawn: the time from which the person can ask again. */
  expireTime: string
}

export const accessRequestType = 'iam.pinfold.dev/AccessRequest'

export const toAccessRequestResource = kindOf<AccessRequest>('access-request')
/** Answer to an access request. `roleUid` is empty if the request was refused. */
export type AnsweredRequest = { request: AccessRequest; roleUid: string }
export const toAnsweredRequestResource = kindOf<AnsweredRequest>('answered-access-request')

export const accessRequestFields = {
  uid: { column: 'uid', sort: true },
} as const satisfies Fields<AccessRequest>

/** Most access requests to one organization that can wait for an answer. */
export const maxWaitingRequests = 1000

const day = 24 * 60 * 60
/**
 * Times in seconds. `waits`: until an unanswered request expires. `again`: until the person can repeat an unanswered request.
 * `afterRefusal`: until the person can ask again after a refusal.
 */
export const requestLife = { waits: 30 * day, again: day, afterRefusal: 7 * day } as const

/** Domains of public email providers, which belong to no organization. */
const sharedDomains: ReadonlySet<string> = new Set(
  `126.com 139.com 163.com 189.cn aim.com alice.it aliyun.com aol.com arcor.de att.net bellsouth.net bigpond.com bk.ru
bluewin.ch btinternet.com centurylink.net charter.net comcast.net cox.net daum.net duck.com earthlink.net email.com
fastmail.com fastmail.fm foxmail.com free.fr freenet.de frontier.com gmail.com gmx.at gmx.ch gmx.com gmx.de gmx.net
googlemail.com guerrillamail.com hanmail.net hey.com hotmail.co.uk hotmail.com hotmail.de hotmail.es hotmail.fr hotmail.it
hushmail.com icloud.com inbox.com inbox.lv inbox.ru interia.pl kpnmail.nl laposte.net libero.it list.ru live.co.uk live.com
live.fr live.nl mac.com mail.com mail.de mail.ru mailbox.org mailinator.com me.com msn.com naver.com neuf.fr o2.pl
onet.pl online.de orange.fr outlook.com outlook.de outlook.fr pm.me posteo.de proton.me protonmail.ch protonmail.com
qq.com rambler.ru rediffmail.com riseup.net rocketmail.com rogers.com sbcglobal.net seznam.cz sfr.fr shaw.ca sina.com
sky.com sohu.com swisscom.com t-online.de talktalk.net telenet.be telus.net temp-mail.org tempmail.com terra.com.br tiscali.it
tutanota.com tuta.io tuta.com uol.com.br verizon.net virgilio.it virginmedia.com wanadoo.fr web.de wp.pl yahoo.ca yahoo.co.in
yahoo.co.jp yahoo.co.uk yahoo.com yahoo.com.br yahoo.de yahoo.es yahoo.fr yahoo.it yandex.com yandex.ru yeah.net ymail.com
yopmail.com zoho.com`.split(/\s+/),
)

/** Domain of an email address, unless it is that of a public provider. Undefined also for an invalid address. */
export function companyDomain(email: string): string | undefined {
  // Only ASCII letters are lowercased. Some other letters would become ASCII letters, and so the domain of another organization.
  const [local, domain, ...more] = email.replace(/[A-Z]/g, (letter) => letter.toLowerCase()).split('@')
  if (!local || !domain || more.length > 0 || domain.length > 253 || !domainPattern.test(domain)) return undefined
  return sharedDomains.has(domain) ? undefined : domain
}
