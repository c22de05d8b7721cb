import { exitCodes, usageError } from '../framework/cli-error.ts'
import { type Command, outputOption } from '../framework/command.ts'
import { size } from '../framework/plain-text.ts'
import { configOf, settingOptions } from '../framework/settings.ts'
import { requireStopped } from './stopped.ts'
import { verifyCommand } from './verify.ts'

export const backupCommand: Command = {
  details: `Each run makes a folder named after its time, with backup.json once it is complete; the blobs of all of them are in blobs,
and what is there already is not copied again. An embedded database is copied; with PostgreSQL make a dump, or archive
its log, first: docs/guides/back-up-and-restore.md has both. The master key is in no backup.`,
  options: [
    ...settingOptions('data', 'database', 'blobs'),
    { flags: '--to <dir>', summary: 'The folder of the backups', required: true },
    { flags: '--keep <count>', summary: 'Remove older copies of an embedded database, and blobs that only they name' },
    outputOption,
  ],
  async run(terminal, options) {
    const config = configOf(terminal, options)
    const keep = options.keep === undefined ? undefined : Number(options.keep)
    if (keep !== undefined && !(Number.isInteger(keep) && keep >= 1 && keep <= 10_000)) {
      throw usageError('--keep must be a number from 1 to 10000')
    }
    const { backup } = await import('#maintenance/backup.ts')
    const made = await backup(config, {
      to: String(options.to),
      ...(keep === undefined ? {} : { keep }),
      progress: ({ contents, bytes }) => terminal.status?.(`${contents} blobs, ${size(bytes)} …`),
    })
    terminal.status?.('')
    if (options.output === 'json') terminal.print(JSON.stringify(made))
    else {
      terminal.print(
        `backed up to ${made.folder}: ${made.contents} blobs, of which ${made.copied} with ${size(made.bytes)} are new`,
      )
      if (made.removed > 0) terminal.print(`removed ${made.removed} blobs that no copy names any more`)
      if (made.damaged.length > 0)
        terminal.say(`pinfold: ${made.damaged.length} blobs are damaged or lost; pinfold verify names them`)
    }
    return made.damaged.length > 0 ? exitCodes.failed : exitCodes.ok
  },
}

export const restoredCommand: Command = {
  details: `Stop every server first. Makes the folder or bucket of --blobs that of the database, frees what servers of before had, ends all
sessions of people, since those that were ended after the backup would be good again, lets the positions of events jump
ahead, so that clients that go on miss nothing, and keeps the trash for its time. Then it verifies. Ends with 1 where
that finds what it could not repair.`,
  options: [
    ...settingOptions('data', 'database', 'blobs'),
    {
      flags: '--end-push-tokens',
      summary: 'End push tokens too, since those that were ended after the backup are good again',
    },
  ],
  async run(terminal, options) {
    const config = configOf(terminal, options)
    const { openRestored, settleRestored } = await import('#maintenance/restored.ts')
    {
      await using opened = new AsyncDisposableStack()
      const place = opened.adopt(await openRestored(config), (one) => one.close())
      const stopped = opened.adopt(await requireStopped(place.db, config), (one) => one.release())
      const how = { config, pushTokens: options.endPushTokens === true }
      const { sessions, pushTokens, trash, position } = await settleRestored(place, how, stopped.tx)
      terminal.print(
        `ended ${sessions} sessions and ${pushTokens} push tokens; ${trash} blobs in the trash are kept for longer`,
      )
      terminal.print(`events go on at position ${position}`)
    }
    return verifyCommand.run(terminal, { ...options, repair: true })
  },
}
