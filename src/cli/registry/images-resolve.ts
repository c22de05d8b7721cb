import type { ResolveTagResponseJson } from '#gen/pinfold/control/registry/v1/views_pb.ts'
import { plain, table } from '#lib/terminal/plain-text.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { exitCodes, usageError } from '../framework/cli-error.ts'
import { outputOption, type Terminal } from '../framework/command.ts'
import { findIdentity } from '../framework/names.ts'
import { imageNamed } from './image-names.ts'
import { timeOf } from './image-options.ts'
import { pullRuleNamed } from './pull-rules.ts'

const reasons: Record<string, string> = {
  'no tag': 'the tag did not exist',
  deleted: 'the tag was deleted',
  gone: 'the image is no longer in the repository',
  young: 'no image has had the tag for long enough',
}

export const imagesResolve = apiCommand({
  details: `Shows the digest that a client gets, and why. --at is for a pull of a snapshot view, such as at-20261101/acme/app:stable.
--min-age is for a pull of a cooldown view, such as min-7d/acme/app:stable. --as and --rule are for a pull by an identity with cooldown
policies.
The exit code is 1 if there is no such digest, or if a cooldown policy denies the pull.`,
  arguments: [{ name: '<image>', summary: 'Image, such as acme/team/app:stable; default tag: latest' }],
  options: [
    { flags: '--at <time>', summary: 'Time at which the tag is read: 2026-11-01, or 2026-11-01T12:00:00Z' },
    {
      flags: '--min-age <span>',
      summary: 'Minimum age: time since the digest was assigned to the tag, such as 12h, 7d or 2w',
    },
    { flags: '--hold <span>', summary: 'Ignore assignments that were replaced within this time; default: 6h' },
    { flags: '--as <identity>', summary: 'Identity that pulls the image: its name, GROUP/NAME or uid' },
    {
      flags: '--rule <policy>',
      summary: 'Cooldown policy to apply, also if its mode is observe: its name, GROUP/NAME or uid',
    },
    outputOption,
  ],
  check(options) {
    timeOf(options, '--at')
    const { at, minAge, as, rule } = options
    if ([at, minAge, as, rule].some((one) => one !== undefined)) return
    throw usageError(
      'give at least one of --at, --min-age, --as and --rule; pinfold tags digest prints the current digest',
    )
  },
  async run(api, options, terminal) {
    const { repo, tag = 'latest', path } = await imageNamed(api, options.image)
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
    const found = (await api.call('GET', where)) as ResolveTagResponseJson
    if (options.output !== 'json') printResolution(terminal, `${path}:${tag}`, found)
    const code = found.chosen && !found.rule?.refuses ? exitCodes.ok : exitCodes.failed
    return options.output === 'json' ? { json: found, code } : { code }
  },
})

function printResolution(
  terminal: Terminal,
  name: string,
  { chosen, reason = '', deleteTime, skipped = [], next, rule }: ResolveTagResponseJson,
): void {
  if (chosen) {
    const imported = chosen.imported ? ' (imported)' : ''
    terminal.print(plain(`${name} is ${chosen.digest}, assigned at ${chosen.assignTime}${imported}`))
  } else {
    const when = deleteTime === undefined ? '' : ` on ${deleteTime}`
    terminal.print(plain(`${name} has no digest: ${reasons[reason] ?? reason}${when}`))
  }
  if (rule) {
    const [called, mode] = [rule.name || rule.uid, rule.mode!.toLowerCase().replace('_', '-')]
    terminal.print(plain(`cooldown policy ${called} (${mode})${rule.refuses ? ' denies pulls of this tag now' : ''}`))
  }
  if (next) terminal.print(plain(`next: ${next.digest}, from ${next.eligibleTime}`))
  if (skipped.length === 0) return
  const rows = skipped.map((one) => [one.assignTime, one.digest, one.reason, one.eligibleTime])
  for (const line of table([['ASSIGNED (SKIPPED)', 'DIGEST', 'WHY', 'UNTIL'], ...rows])) terminal.print(line)
}
