import type { Call, Handlers } from '#app.ts'
import {
  type EmailDomain as DomainMessage,
  EmailDomainSchema,
  EmailDomainsService,
} from '#gen/pinfold/control/iam/v1/email_domains_pb.ts'
import { deleting, listing } from '#lib/contract/handlers.ts'
import { messageOf, required } from '#lib/contract/messages.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { type EmailDomain, recordOf, toEmailDomainResource } from './email-domains.model.ts'
import * as service from './email-domains.service.ts'

const { method } = EmailDomainsService
const rules = { fields: { uid: { column: 'uid', sort: true } }, defaultOrder: 'uid' } as const
const toDomain = messageOf(EmailDomainSchema)

export const emailDomains: Handlers<typeof EmailDomainsService> = {
  async createEmailDomain(call, { organization, emailDomain }) {
    const { domain } = required(emailDomain, 'email_domain')
    return toMessage(await service.createEmailDomain(call, organization, domain))
  },

  listEmailDomains: listing(
    method.listEmailDomains,
    rules,
    ({ organization }) => ({ organization }),
    (call: Call, query) => service.listEmailDomains(call, query.filter.organization, query),
    toMessage,
  ),

  async verifyEmailDomain(call, { uid }) {
    return toMessage(await service.verifyEmailDomain(call, uid))
  },

  deleteEmailDomain: deleting('uid', service.deleteEmailDomain),
}

export const emailDomainEvents: readonly EventBody[] = [
  eventBody(method.createEmailDomain, toEmailDomainResource, toMessage),
  eventBody(method.verifyEmailDomain, toEmailDomainResource, toMessage),
  deletionBody(method.deleteEmailDomain),
]

function toMessage(domain: EmailDomain): DomainMessage {
  const { name, value } = recordOf(domain)
  const { uid, verifyTime, createTime } = domain
  return toDomain({
    ...{ uid, domain: domain.domain, verified: verifyTime !== '', recordName: name, recordValue: value },
    ...{ verifyTime, createTime, updateTime: verifyTime || createTime },
  })
}
