import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import { domainPattern } from '../groups/groups.model.ts'

/** That a person asks to get into an organisation whose domain is that of their verified address. */
export type AccessRequest = {
  /** Below the uid of the organisation. */
  uid: string
  identityUid: string
  /** As the sign-in provider has named the person, and the address that it calls verified. */
  name: string
  email: string
  /** It is withdrawn when the account goes while it waits. */
  state: 'waiting' | 'refused' | 'withdrawn'
  createTime: string
  /** When the person asked last. */
  askTime: string
  /** Until when it waits; or, once it was refused or withdrawn, when the person may ask again. */
  expireTime: string
}

export const accessRequestType = 'iam.pinfold.dev/AccessRequest'

export const anAccessRequest = kindOf<AccessRequest>('access-request')
/** What came of it; `roleUid` is empty when the person was not let in. */
export type AnsweredRequest = { request: AccessRequest; roleUid: string }
export const anAnsweredRequest = kindOf<AnsweredRequest>('answered-access-request')

export const accessRequestFields = {
  uid: { column: 'uid', sort: true },
} as const satisfies Fields<AccessRequest>

/** How many people may wait for an organisation's answer. */
export const maxWaitingRequests = 1000

const day = 24 * 60 * 60
/** In seconds: how long a request waits, after how long it can be repeated, and after how long once it was refused. */
export const requestLife = { waits: 30 * day, again: day, afterRefusal: 7 * day } as const

/** Where anybody gets an address, so that it says nothing of an organisation. */
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

/** The domain of an address, where it can be that of one organisation; nothing for every other address. */
export function companyDomain(email: string): string | undefined {
  // Of ASCII only: some other letters become ASCII ones, and so another's domain.
  const [local, domain, ...more] = email.replace(/[A-Z]/g, (letter) => letter.toLowerCase()).split('@')
  if (!local || !domain || more.length > 0 || domain.length > 253 || !domainPattern.test(domain)) return undefined
  return sharedDomains.has(domain) ? undefined : domain
}
