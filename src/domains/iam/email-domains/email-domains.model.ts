import { domainToASCII } from 'node:url'
import { kindOf } from '#lib/events/event-body.ts'

/** Domain of email addresses whose users sign in with the identity provider of an organization. */
export type EmailDomain = {
  /** Uid, below the uid of the organization. */
  uid: string
  domain: string
  /** Random part of the DNS record. It is no secret, since anybody can read the record. */
  token: string
  /** Empty if the domain is not verified. */
  verifyTime: string
  createTime: string
}

export const emailDomainType = 'iam.pinfold.dev/EmailDomain'
export const toEmailDomainResource = kindOf<EmailDomain>('email-domain')

/** Maximum number of domains of one organization. */
export const mostDomains = 100

/** Name and value of the TXT record that verifies the domain. */
export function recordOf({ domain, token }: Pick<EmailDomain, 'domain' | 'token'>): { name: string; value: string } {
  return { name: `_pinfold-challenge.${domain}`, value: `pinfold-verification=${token}` }
}

/** Domain in lowercase ASCII. Undefined if the text is not a domain with at least two labels. */
export function readDomain(text: string): string | undefined {
  if (text.length > 253) return undefined
  const ascii = domainToASCII(text.trim().replace(/\.$/, ''))
  const isDomain = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,10}[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/.test(ascii)
  return isDomain && ascii.length <= 200 ? ascii : undefined
}
