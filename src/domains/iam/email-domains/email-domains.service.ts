import { randomBytes } from 'node:crypto'
import type { App, Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { emit, emitDeleted } from '#domains/outbox/emit.ts'
import { AppError, alreadyExists, failedPrecondition, found, invalid, limitExceeded } from '#lib/errors.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { newUid, parentOf, rootOf } from '#lib/uid.ts'
import { requireGroup } from '../groups/groups.service.ts'
import { listFrom } from '../groups/list-nodes.ts'
import {
  type EmailDomain,
  emailDomainType,
  mostDomains,
  readDomain,
  recordOf,
  toEmailDomainResource,
} from './email-domains.model.ts'
import * as store from './email-domains.store.ts'

/** Adds a domain to an organization. It has no effect until it is verified. */
export async function createEmailDomain(call: Call, organization: string, text: string): Promise<EmailDomain> {
  if (organization !== rootOf(organization))
    throw invalid({ field: 'organization', description: 'must be the uid of an organization' })
  const domain = readDomain(text)
  if (domain === undefined)
    throw invalid({ field: 'email_domain.domain', description: 'must be a domain, such as acme.example' })
  const token = randomBytes(16).toString('hex')
  const created: EmailDomain = { uid: newUid(organization), domain, token, verifyTime: '', createTime: call.now }
  await call.app.db.tx(async (tx) => {
    await requireGroup(tx, organization)
    const count = await store.countDomains(tx, organization)
    if (count >= mostDomains) throw limitExceeded('email_domains', 'email domains', count, mostDomains)
    if (!(await store.insertDomain(tx, created)))
      throw alreadyExists(emailDomainType, domain, 'the organization already has this domain')
    await emit(tx, call, 'control.iam.email_domain.created', {
      subject: created.uid,
      resource: toEmailDomainResource(created),
    })
  })
  call.log.info('email domain created', { uid: created.uid })
  return created
}

export async function listEmailDomains(
  call: Call,
  organization: string,
  query: ListQuery<object>,
): Promise<Listed<EmailDomain>> {
  await requireGroup(call.app.db, organization)
  return listFrom(call, query, [organization], store.domainList)
}

/** Verifies a domain by its DNS record. If the record of the organization that had verified it is gone, takes the domain over. */
export async function verifyEmailDomain(call: Call, uid: string): Promise<EmailDomain> {
  const { app, now } = call
  const asked = found(await store.findDomain(app.db, uid), emailDomainType, uid)
  if (!(await isPublished(app, asked))) throw recordMissing(asked)
  const holder = await store.findVerified(app.db, asked.domain)
  const isForeign = holder !== undefined && holder.uid !== uid
  if (isForeign && (await isPublished(app, holder))) throw domainTaken(asked)
  const verified = await app.db.tx(async (tx) => {
    const domain = { ...found(await store.findDomain(tx, uid), emailDomainType, uid), verifyTime: now }
    const current = await store.findVerified(tx, domain.domain)
    // Another organization may have verified the domain during the lookups.
    if (current && current.uid !== uid && current.uid !== holder?.uid) throw domainTaken(domain)
    if (current && current.uid !== uid) await store.setVerified(tx, current.uid, '')
    await store.setVerified(tx, uid, now)
    const resource = toEmailDomainResource(domain)
    await emit(tx, call, 'control.iam.email_domain.verified', { subject: uid, resource })
    return domain
  })
  call.log.info('email domain verified', {
    uid,
    domain: verified.domain,
    before: isForeign ? parentOf(holder.uid) : '',
  })
  return verified
}

/** Removes a domain. The uid of its organization is part of its uid. */
export async function deleteEmailDomain(call: Call, uid: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    const domain = found(await store.findDomain(tx, uid), emailDomainType, uid)
    await store.deleteDomain(tx, domain.uid)
    await emitDeleted(tx, call, 'control.iam.email_domain.deleted', uid)
  })
  call.log.info('email domain deleted', { uid })
}

/** Organization that has verified the domain of an email address. Undefined if there is none. */
export async function organizationOfDomain(reader: Reader, text: string): Promise<string | undefined> {
  const domain = readDomain(text)
  const verified = domain === undefined ? undefined : await store.findVerified(reader, domain)
  return verified && parentOf(verified.uid)
}

/** Errors of DNS that mean that the record does not exist. */
const absent = ['ENOTFOUND', 'ENODATA']

async function isPublished({ dns }: App, domain: EmailDomain): Promise<boolean> {
  const { name, value } = recordOf(domain)
  try {
    // A record consists of parts of at most 255 bytes.
    return (await dns.resolveTxt(name)).some((parts) => parts.join('').trim() === value)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code !== undefined && absent.includes(code)) return false
    throw new AppError('UNAVAILABLE', `DNS did not answer for ${name} (${code ?? 'no error code'}); try again later`, {
      cause,
    })
  }
}

function recordMissing(domain: EmailDomain): AppError {
  const { name, value } = recordOf(domain)
  return failedPrecondition({
    type: 'DNS_RECORD_MISSING',
    subject: domain.domain,
    description: `the domain was not verified, because DNS has no TXT record ${name} with the value ${value}; create it, wait until it is published, and verify again`,
  })
}

function domainTaken({ domain }: EmailDomain): AppError {
  return failedPrecondition({
    type: 'DOMAIN_VERIFIED_ELSEWHERE',
    subject: domain,
    description: `the domain was not verified, because another organization of this server has verified it; remove the other TXT record of _pinfold-challenge.${domain}, and verify again`,
  })
}
