// What the registry has refused, and why.
import { apiReader, parentOf } from '../shape/api-pages.ts'
import { type Command, exitCodes, outputOption } from '../shape/command.ts'
import { actorsOf } from '../shape/names.ts'
import { jsonText, table } from '../shape/plain-text.ts'
import { sessionOptions } from '../shape/session.ts'
import { limitOf } from './page-limit.ts'

type Refusal = {
  repository?: string
  reference?: string
  action: string
  caller: string
  remoteAddress?: string
  code: string
  reason: string
  count: string
  lastTime: string
}

export const refusals: Command = {
  details: `A sample: the latest of an organisation are kept, and those of one hour that are alike are one line. Whoever may read
the audit log sees it.`,
  options: [
    {
      flags: '--group <group>',
      summary: 'A group by uid or by name, ORG or ORG/FOLDER; your own organisation unless given',
    },
    { flags: '--limit <count>', summary: 'How many: 50 unless given, 200 at most' },
    outputOption,
    ...sessionOptions,
  ],
  async run(terminal, options) {
    const page_size = limitOf(options)
    const api = await apiReader(terminal, options)
    const page = await api.call(
      'GET',
      `/events/v2/refusals/${await parentOf(api, options.group)}?page_size=${page_size}`,
    )
    const items = (page as { refusals?: Refusal[] }).refusals ?? []
    if (options.output === 'json') {
      terminal.print(jsonText({ items }, 2))
      return exitCodes.ok
    }
    const names = await actorsOf(
      api,
      items.map(({ caller }) => caller),
    )
    const rows = items.map((one) => {
      const what = one.reference ? `${one.repository ?? ''}  ${one.reference}` : (one.repository ?? '')
      const who = `${names.get(one.caller) ?? one.caller} (${one.remoteAddress ?? ''})`
      return [one.lastTime, one.count, one.action, what || '(none of that name)', who, `${one.code}: ${one.reason}`]
    })
    for (const line of table([['LAST', 'TIMES', 'ACTION', 'WHAT', 'WHO', 'WHY'], ...rows])) terminal.print(line)
    return exitCodes.ok
  },
}
