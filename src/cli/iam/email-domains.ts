// Email domains of an organization: users with such addresses find the organization on the sign-in page.
import type { EmailDomainJson } from '#gen/pinfold/control/iam/v1/email_domains_pb.ts'
import { apiCommand, parentOf } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { failure } from '../framework/cli-error.ts'
import { type Commands, type Options, outputOption } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { confirm, type Item, yesOption } from '../framework/outputs.ts'

type EmailDomain = Item & EmailDomainJson & { domain: string }

const root = '/control/v1/emailDomains'
const domainArgument = { name: '<domain>', summary: 'Domain of email addresses, such as acme.example' }
const inOption = {
  flags: '--in <organization>',
  summary: 'Organization: its name or uid; default: your own organization',
}

const head = ['DOMAIN', 'VERIFIED', 'TXT RECORD', 'VALUE']

function cellsOf({ domain, verified, verifyTime, recordName, recordValue }: EmailDomain) {
  return [domain, verified ? verifyTime : 'no', recordName, recordValue]
}

async function find(api: ApiReader, options: Options): Promise<EmailDomain> {
  const organization = await parentOf(api, options.in)
  const { items } = await api.list<EmailDomain>(`${root}/${organization}`, 'emailDomains', {})
  const wanted = String(options.domain).toLowerCase()
  const found = items.find(({ domain, uid }) => domain === wanted || uid === wanted)
  if (found) return found
  const next = 'pinfold identity-providers domains list lists the domains, and create adds one'
  throw failure(`the organization has no email domain ${wanted}\n${next}`)
}

export const emailDomainCommands: Commands = {
  list: listCommand({
    options: [inOption, outputOption],
    async run(api, options) {
      const organization = await parentOf(api, options.in)
      const { items, more } = await api.selected<EmailDomain>(`${root}/${organization}`, 'emailDomains', {})
      const shown = api.isOrdered ? items : items.toSorted((a, b) => (a.domain < b.domain ? -1 : 1))
      return { json: { items: shown }, head, rows: shown.map(cellsOf), more }
    },
  }),

  create: apiCommand({
    details: `Prints the TXT record that you create at your DNS provider. Then run pinfold identity-providers domains verify.`,
    arguments: [domainArgument],
    options: [inOption, outputOption],
    async run(api, options) {
      const organization = await parentOf(api, options.in)
      const body = { domain: options.domain }
      const created = (await api.call('POST', `${root}/${organization}`, body)) as EmailDomain
      const scope = options.in === undefined ? '' : ` --in ${options.in}`
      return {
        json: created,
        head,
        rows: [cellsOf(created)],
        below: `create this TXT record, then run: pinfold identity-providers domains verify ${created.domain}${scope}`,
      }
    },
  }),

  verify: apiCommand({
    details: `Looks up the TXT record of the domain. A new record can take minutes to hours until it is published. The exit code is 1 while the
record is missing.`,
    arguments: [domainArgument],
    options: [inOption, outputOption],
    async run(api, options) {
      const { uid } = await find(api, options)
      const verified = (await api.call('POST', `${root}/${uid}:verify`, {})) as EmailDomain
      return {
        json: verified,
        text: `${verified.domain} is verified: users with such email addresses find your sign-in`,
      }
    },
  }),

  delete: apiCommand({
    arguments: [domainArgument],
    options: [inOption, yesOption],
    async run(api, options, terminal) {
      const { uid, domain } = await find(api, options)
      await confirm(terminal, options.yes, `delete the email domain ${domain}`)
      await api.call('DELETE', `${root}/${uid}`)
      terminal.say(`Deleted ${domain}`)
      return {}
    },
  }),
}
