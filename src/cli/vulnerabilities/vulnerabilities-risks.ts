// Commands for accepted risks.

import type { RiskAcceptanceJson } from '#gen/pinfold/control/scanning/v1/risks_pb.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { type Commands, outputOption } from '../framework/command.ts'
import { endGrant, listGrants, requiredScopeOption, scopeOf, untilOf, untilOptions } from '../registry/rules.ts'

const kind = { path: '/registry/v2/riskAcceptances', member: 'riskAcceptances' }

const accept = apiCommand({
  details: `Until --until, the vulnerability does not count in reports, counts and admission policies of the scope. Reports show who accepted it
and why. Reports of the past do not change.`,
  arguments: [{ name: '<vulnerability>', summary: 'CVE, or another id that a data source has for the vulnerability' }],
  options: [
    requiredScopeOption,
    ...untilOptions(366),
    { flags: '--digest <digest>', summary: 'Only in the image with this digest: sha256:…' },
    { flags: '--package <purl>', summary: 'Only in this package, such as pkg:apk/alpine/zlib' },
    outputOption,
  ],
  check: untilOf,
  async run(api, options) {
    const scope = await scopeOf(api, options)
    const { vulnerability, reason, digest, package: purl } = options
    const body = { vulnerability, reason, expireTime: untilOf(options), digest, package: purl }
    const made = await api.call('POST', `${kind.path}/${scope}`, body)
    return { json: made, text: `accepted ${made.vulnerability} until ${made.expireTime}: ${made.uid}` }
  },
})

export const vulnerabilitiesRisks: Commands = {
  list: listGrants<RiskAcceptanceJson>({
    ...kind,
    head: ['UID', 'VULNERABILITY', 'ONLY', 'STATE', 'UNTIL', 'BY', 'REASON'],
    row: (one, by) => [
      one.uid,
      one.vulnerability,
      [one.digest, one.package].filter(Boolean).join(' '),
      one.state?.toLowerCase(),
      one.expireTime,
      by,
      one.reason,
    ],
  }),
  accept,
  revoke: endGrant<RiskAcceptanceJson>(kind, {
    list: 'pinfold vulnerabilities risks list',
    argument: 'Uid of the accepted risk, as pinfold vulnerabilities risks list shows it',
    reason: true,
    text: ({ vulnerability }) => `${vulnerability} counts again`,
  }),
}
