import { callerOptions } from '../shape/api-pages.ts'
import { CliError, type Command, exitCodes, outputOption, type Terminal } from '../shape/command.ts'
import { jsonText, plain, table } from '../shape/plain-text.ts'
import { imageOf, momentOf } from './image-options.ts'

type Assignment = { digest: string; assignTime: string; imported?: boolean }
type Skipped = Assignment & { reason: string; eligibleTime?: string }
type Resolved = {
  chosen?: Assignment
  latest?: Assignment
  reason?: string
  deleteTime?: string
  skipped?: Skipped[]
  next?: Skipped
}

const reasons: Record<string, string> = {
  'no tag': 'there was no such tag',
  deleted: 'the tag was deleted',
  gone: 'the repository has the image no more',
  young: 'nothing is old enough',
}

export const imagesResolve: Command = {
  name: 'resolve',
  summary: 'Show what a tag stands for as of a moment, or at an age, and why',
  details: `What at-20261101/acme/app:stable and min-7d/acme/app:stable are pulled as. Ends with 1 when that is nothing.`,
  arguments: [{ name: '<image>', summary: 'Such as acme/team/app:stable; latest without a tag' }],
  options: [
    { flags: '--at <time>', summary: 'As of this time: 2026-11-01, or 2026-11-01T12:00:00Z' },
    { flags: '--min-age <span>', summary: 'The newest that has been the tag for so long: 12h, 7d, 2w' },
    { flags: '--hold <span>', summary: 'A stay that ended after less does not count; 6h unless given' },
    outputOption,
    ...callerOptions,
  ],
  async run(terminal, options) {
    const at = options.at === undefined ? undefined : momentOf(String(options.at), '--at')
    if (at === undefined && options.minAge === undefined) {
      throw new CliError(exitCodes.usage, 'say as of when, by --at, or how old, by --min-age')
    }
    const { api, repo, tag = 'latest', path } = await imageOf(terminal, options)
    const query = new URLSearchParams()
    for (const [name, value] of [
      ['at', at],
      ['minAge', options.minAge],
      ['hold', options.hold],
    ] as const) {
      if (value !== undefined) query.set(name, String(value))
    }
    const where = `/registry/v2/repos/${repo}/resolvedTags/${encodeURIComponent(tag)}?${query}`
    const found = (await api.call('GET', where)) as Resolved
    if (options.output === 'json') terminal.print(jsonText(found, 2))
    else tell(terminal, `${path}:${tag}`, found)
    return found.chosen ? exitCodes.ok : exitCodes.failed
  },
}

function tell(
  terminal: Terminal,
  name: string,
  { chosen, reason = '', deleteTime, skipped = [], next }: Resolved,
): void {
  if (chosen) {
    const imported = chosen.imported ? ', as was imported' : ''
    terminal.print(plain(`${name} is ${chosen.digest} of ${chosen.assignTime}${imported}`))
  } else {
    const when = deleteTime === undefined ? '' : ` on ${deleteTime}`
    terminal.print(plain(`${name} is nothing: ${reasons[reason] ?? reason}${when}`))
  }
  if (next) terminal.print(plain(`next is ${next.digest}, from ${next.eligibleTime}`))
  if (skipped.length === 0) return
  const rows = skipped.map((one) => [one.assignTime, one.digest, one.reason, one.eligibleTime ?? ''])
  for (const line of table([['PASSED OVER', 'DIGEST', 'WHY', 'UNTIL'], ...rows])) terminal.print(line)
}
