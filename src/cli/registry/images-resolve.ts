import { apiCommand } from '../framework/api-pages.ts'
import { exitCodes, usageError } from '../framework/cli-error.ts'
import { outputOption, type Terminal } from '../framework/command.ts'
import { findIdentity } from '../framework/names.ts'
import { plain, table } from '../framework/plain-text.ts'
import { imageOf, timeOf } from './image-options.ts'
import { pullRuleNamed } from './pull-rules.ts'

type Assignment = { digest: string; assignTime: string; imported?: boolean }
type Skipped = Assignment & { reason: string; eligibleTime?: string }
type Resolved = {
  chosen?: Assignment
  latest?: Assignment
  reason?: string
  deleteTime?: string
  skipped?: Skipped[]
  next?: Skipped
  rule?: { uid: string; name?: string; mode: string; refuses?: boolean }
}

const reasons: Record<string, string> = {
  'no tag': 'there was no such tag',
  deleted: 'the tag was deleted',
  gone: 'the repository has the image no more',
  young: 'nothing is old enough',
}

export const imagesResolve = apiCommand({
  details: `What at-20261101/acme/app:stable and min-7d/acme/app:stable are pulled as, or acme/app:stable by whom pull rules
bind. Ends with 1 when that is nothing.`,
  arguments: [{ name: '<image>', summary: 'Such as acme/team/app:stable; latest without a tag' }],
  options: [
    { flags: '--at <time>', summary: 'As of this time: 2026-11-01, or 2026-11-01T12:00:00Z' },
    { flags: '--min-age <span>', summary: 'The newest that has been the tag for so long: 12h, 7d, 2w' },
    { flags: '--hold <span>', summary: 'A stay that ended after less does not count; 6h unless given' },
    { flags: '--as <identity>', summary: 'As this identity pulls it, by name, GROUP/NAME or uid' },
    { flags: '--rule <rule>', summary: 'As whoever this pull rule binds pulls it, also where it only observes' },
    outputOption,
  ],
  check(options) {
    timeOf(options, '--at')
    const { at, minAge, as, rule } = options
    if ([at, minAge, as, rule].some((one) => one !== undefined)) return
    throw usageError('say as of when, by --at, how old, by --min-age, or for whom, by --as or --rule')
  },
  async run(api, options, terminal) {
    const { repo, tag = 'latest', path } = await imageOf(api, options)
    const query = new URLSearchParams()
    for (const [name, value] of [
      ['at', timeOf(options, '--at')],
      ['minAge', options.minAge],
      ['hold', options.hold],
      ['identityUid', options.as === undefined ? undefined : await findIdentity(api, String(options.as))],
      ['pullRuleUid', options.rule === undefined ? undefined : await pullRuleNamed(api, String(options.rule))],
    ] as const) {
      if (value !== undefined) query.set(name, String(value))
    }
    const where = `/registry/v2/repos/${repo}/resolvedTags/${encodeURIComponent(tag)}?${query}`
    const found = (await api.call('GET', where)) as Resolved
    if (options.output !== 'json') tell(terminal, `${path}:${tag}`, found)
    const code = found.chosen && !found.rule?.refuses ? exitCodes.ok : exitCodes.failed
    return options.output === 'json' ? { json: found, code } : { code }
  },
})

function tell(
  terminal: Terminal,
  name: string,
  { chosen, reason = '', deleteTime, skipped = [], next, rule }: Resolved,
): void {
  if (chosen) {
    const imported = chosen.imported ? ', as was imported' : ''
    terminal.print(plain(`${name} is ${chosen.digest} of ${chosen.assignTime}${imported}`))
  } else {
    const when = deleteTime === undefined ? '' : ` on ${deleteTime}`
    terminal.print(plain(`${name} is nothing: ${reasons[reason] ?? reason}${when}`))
  }
  if (rule) {
    const [called, mode] = [rule.name || rule.uid, rule.mode.toLowerCase().replace('_', '-')]
    terminal.print(
      plain(`by the rule ${called} (${mode})${rule.refuses ? ', which refuses pulls by this tag now' : ''}`),
    )
  }
  if (next) terminal.print(plain(`next is ${next.digest}, from ${next.eligibleTime}`))
  if (skipped.length === 0) return
  const rows = skipped.map((one) => [one.assignTime, one.digest, one.reason, one.eligibleTime ?? ''])
  for (const line of table([['PASSED OVER', 'DIGEST', 'WHY', 'UNTIL'], ...rows])) terminal.print(line)
}
