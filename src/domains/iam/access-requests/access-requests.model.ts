import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import { domainPattern } from '../groups/groups.model.ts'

/** A person's request to join the organization whose domain is that of their verified address. */
export type AccessRequest = {
  /** Below the uid of the organization. */
  uid: string
  identityUid: string
  /** Name and verified address of the person, from the sign-in provider. */
  name: string
  email: string
  /** `withdrawn` if the account was deleted while the request was waiting. */
  state: 'waiting' | 'refused' | 'withdrawn'
  createTime: string
  /** When the person asked last. */
  askTime: string
  /** End of the wait for an answer. Once refused or withdrawn: the time from which the person may ask again. */
  expireTime: string
}

export const accessRequestType = 'iam.pinfold.dev/AccessRequest'

export const toAccessRequestResource = kindOf<AccessRequest>('access-request')
/** Answer to a request. `roleUid` is empty if the request was refused. */
export type AnsweredRequest = { request: AccessRequest; roleUid: string }
export const toAnsweredRequestResource = kindOf<AnsweredRequest>('answered-access-request')

export const accessRequestFields = {
  uid: { column: 'uid', sort: true },
} as const satisfies Fields<AccessRequest>

/** Most requests that wait for an answer of one organization. */
export const maxWaitingRequests = 1000

const day = 24 * 60 * 60
/** In seconds: time for which a request waits, time until it can be repeated, and time until then after a refusal. */
export const requestLife = { waits: 30 * day, again: day, afterRefusal: 7 * day } as const

/** Public email providers. Their domains belong to no organization. */
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

/** Domain of an email address, if it can be that of one organization. Undefined for every other address. */
export function companyDomain(email: string): string | undefined {
  // Lowercases only ASCII: some other letters become ASCII ones, and so the domain of somebody else.
  const [local, domain, ...more] = email.replace(/[A-Z]/g, (letter) => letter.toLowerCase()).split('@')
  if (!local || !domain || more.length > 0 || domain.length > 253 || !domainPattern.test(domain)) return undefined
  return sharedDomains.has(domain) ? undefined : domain
}
