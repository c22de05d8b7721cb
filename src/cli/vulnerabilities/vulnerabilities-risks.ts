// Risks that somebody has accepted.
import { commonOptions, momentOf, show } from '../registry/image-options.ts'
import { endedOption, givenUid, listMade, placeOptions, printMade, requiredPlaceOf } from '../registry/place-options.ts'
import { apiReader, callerOptions } from '../shape/api-pages.ts'
import { type Command, type Commands, outputOption } from '../shape/command.ts'

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

const path = '/registry/v2/riskAcceptances'
const list: Command = {
  options: [...placeOptions, endedOption, ...commonOptions],
  async run(terminal, options) {
    const wanted = { path, member: 'riskAcceptances' }
    const { items, more, madeBy } = await listMade<Risk>(terminal, options, wanted)
    const rows = items.map((one) => [
      one.uid,
      one.vulnerability,
      [one.digest, one.package].filter(Boolean).join(' '),
      one.state.toLowerCase(),
      one.expireTime,
      madeBy(one),
      one.reason,
    ])
    return show(
      terminal,
      options,
      { items },
      ['UID', 'VULNERABILITY', 'ONLY', 'STATE', 'UNTIL', 'BY', 'WHY'],
      rows,
      more,
    )
  },
}

const accept: Command = {
  details: `Until then it does not count there in reports and counts. It is shown with who accepted it and why, and past reports
stay as they were.`,
  arguments: [{ name: '<vulnerability>', summary: 'Its CVE, or any other id that a source has for it' }],
  options: [
    ...placeOptions,
    { flags: '--reason <text>', summary: 'Why', required: true },
    { flags: '--until <time>', summary: 'A day such as 2026-12-31, or a time; at most 366 days ahead', required: true },
    { flags: '--digest <digest>', summary: 'Only in this image' },
    { flags: '--package <purl>', summary: 'Only in this package, such as pkg:apk/alpine/zlib' },
    outputOption,
    ...callerOptions,
  ],
  async run(terminal, options) {
    const expireTime = momentOf(String(options.until), '--until')
    const api = await apiReader(terminal, options)
    const place = await requiredPlaceOf(api, options)
    const { vulnerability, reason, digest, package: purl } = options
    const made = (await api.call('POST', `${path}/${place}`, {
      ...{ vulnerability, reason, expireTime },
      ...(digest === undefined ? {} : { digest }),
      ...(purl === undefined ? {} : { package: purl }),
    })) as Risk
    return printMade(terminal, options, made, `accepted ${made.vulnerability} until ${made.expireTime}: ${made.uid}`)
  },
}

const revoke: Command = {
  arguments: [{ name: '<uid>', summary: 'Of the acceptance, as list shows it' }],
  options: [{ flags: '--reason <text>', summary: 'Why' }, outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const made = (await api.call('POST', `${path}/${givenUid(options, 'pinfold vulnerabilities risks list')}:revoke`, {
      reason: options.reason ?? '',
    })) as Risk
    return printMade(terminal, options, made, `${made.vulnerability} counts again`)
  },
}

export const vulnerabilitiesRisks: Commands = { list, accept, revoke }
