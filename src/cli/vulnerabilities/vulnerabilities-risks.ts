// Accepted risks.

import { apiCommand } from '../framework/api-pages.ts'
import { type Commands, outputOption } from '../framework/command.ts'
import { endGrant, listGrants, placeOptions, requiredPlaceOf, untilOf, untilOptions } from '../registry/rules.ts'

type Risk = {
  uid: string
  vulnerability: string
  digest: string
  package: string
  reason: string
  expireTime: string
  actor: string
  state: string
}

const kind = { path: '/registry/v2/riskAcceptances', member: 'riskAcceptances' }

const accept = apiCommand({
  details: `Until then it does not count there in reports and counts. It is shown with who accepted it and why, and past reports
stay as they were.`,
  arguments: [{ name: '<vulnerability>', summary: 'Its CVE, or any other id that a source has for it' }],
  options: [
    ...placeOptions,
    ...untilOptions(366),
    { flags: '--digest <digest>', summary: 'Only in this image' },
    { flags: '--package <purl>', summary: 'Only in this package, such as pkg:apk/alpine/zlib' },
    outputOption,
  ],
  check: untilOf,
  async run(api, options) {
    const place = await requiredPlaceOf(api, options)
    const { vulnerability, reason, digest, package: purl } = options
    const body = { vulnerability, reason, expireTime: untilOf(options), digest, package: purl }
    const made = await api.call('POST', `${kind.path}/${place}`, body)
    return { json: made, text: `accepted ${made.vulnerability} until ${made.expireTime}: ${made.uid}` }
  },
})

export const vulnerabilitiesRisks: Commands = {
  list: listGrants<Risk>({
    ...kind,
    head: ['UID', 'VULNERABILITY', 'ONLY', 'STATE', 'UNTIL', 'BY', 'WHY'],
    row: (one, by) => [
      one.uid,
      one.vulnerability,
      [one.digest, one.package].filter(Boolean).join(' '),
      one.state.toLowerCase(),
      one.expireTime,
      by,
      one.reason,
    ],
  }),
  accept,
  revoke: endGrant<Risk>(kind, {
    list: 'pinfold vulnerabilities risks list',
    argument: 'Of the acceptance, as list shows it',
    reason: true,
    text: ({ vulnerability }) => `${vulnerability} counts again`,
  }),
}
