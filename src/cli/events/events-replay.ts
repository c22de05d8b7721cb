import { codes } from '#lib/errors.ts'
import { ApiError } from '../shape/api-client.ts'
import { type Command, exitCodes } from '../shape/command.ts'
import { plain } from '../shape/plain-text.ts'
import { base, common, show, target, whichArgument } from './subscription-calls.ts'

type Replayed = { eventCount: string; nextPageToken: string }

export const replay: Command = {
  details: `Times are RFC 3339, such as 2026-11-20T09:00:00Z. Each event has the id that it had before. Where as many wait as may, it says
how to go on later.`,
  arguments: [whichArgument],
  options: [
    { flags: '--since <time>', summary: 'From this time on', required: true },
    { flags: '--until <time>', summary: 'Before this time; now unless given' },
    { flags: '--page-token <token>', summary: 'Go on where a run with the same times has ended' },
    ...common,
  ],
  async run(terminal, options) {
    const { call, uid } = await target(terminal, options)
    const time = { startTime: options.since, ...(options.until === undefined ? {} : { endTime: options.until }) }
    let count = 0
    let pageToken = String(options.pageToken ?? '')
    let trouble = ''
    do {
      try {
        const made = (await call('POST', `${base}/${uid}:replay`, { ...time, pageToken })) as Replayed
        count += Number(made.eventCount)
        pageToken = made.nextPageToken
      } catch (error) {
        // What was made before it stays, and whoever is told where that ended need not send it once more.
        if (count === 0 || !(error instanceof ApiError)) throw error
        if (error.code !== codes.FAILED_PRECONDITION.number) trouble = error.message
        break
      }
    } while (pageToken !== '')
    const rows = [[`${count} events will be sent once more`]]
    const why = trouble === '' ? 'as many wait as may' : plain(trouble)
    if (pageToken !== '') rows.push([`${why}; go on later with --page-token ${pageToken}`])
    show(terminal, options, { eventCount: String(count), nextPageToken: pageToken }, rows)
    return trouble === '' ? exitCodes.ok : exitCodes.failed
  },
}
