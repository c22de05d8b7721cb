import { jsonText, size } from '#lib/terminal/plain-text.ts'
import { exitCodes, usageError } from '../framework/cli-error.ts'
import { type Command, outputOption } from '../framework/command.ts'
import { configOf, settingOptions } from '../framework/settings.ts'
import { requireStopped } from './stopped.ts'
import { verifyCommand } from './verify.ts'

export const backupCommand: Command = {
  details: `Each run creates a folder named after its time; a complete backup contains backup.json. The blobs of all backups are in the folder
blobs, and existing blobs are not copied again. An embedded database (SQLite) is copied. If the database is PostgreSQL, make a
dump or archive its log first; see docs/guides/back-up-and-restore.md. No backup contains the master key.`,
  options: [
    ...settingOptions('data', 'database', 'blobs'),
    { flags: '--to <dir>', summary: 'Folder of the backups', required: true },
    {
      flags: '--keep <count>',
      summary:
        'Number of copies of an embedded database to keep; deletes older ones, and blobs that only they need; default: keep all',
    },
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
    if (options.output === 'json') terminal.print(jsonText(made))
    else {
      terminal.print(
        `backed up to ${made.folder}: ${made.contents} blobs; ${made.copied} of them are new (${size(made.bytes)})`,
      )
      if (made.removed > 0) terminal.print(`deleted ${made.removed} blobs that no backup needs`)
      if (made.damaged.length > 0)
        terminal.say(`pinfold: ${made.damaged.length} blobs are damaged or lost; pinfold server verify lists them`)
    }
    return made.damaged.length > 0 ? exitCodes.failed : exitCodes.ok
  },
}

export const restoredCommand: Command = {
  details: `Stop every server first. Then this command:
- connects the database with the folder or bucket of --blobs
- releases leases of the former servers
- ends all sign-in sessions, because sessions that ended after the backup would be valid again
- advances the position of the event stream, so that clients that continue miss no event
- ends all transparency logs; the tag history is then logged in new ones
- keeps deleted blobs in the trash for their full time
- verifies the database and the blobs, and repairs differences
The exit code is 1 if a difference could not be repaired.`,
  options: [
    ...settingOptions('data', 'database', 'blobs'),
    {
      flags: '--end-push-tokens',
      summary: 'Also delete all push tokens: tokens that were deleted after the backup would be valid again',
    },
  ],
  async run(terminal, options) {
    const config = configOf(terminal, options)
    const { openRestored, completeRestore } = await import('#maintenance/restored.ts')
    {
      await using opened = new AsyncDisposableStack()
      const restored = opened.adopt(await openRestored(config), (one) => one.close())
      const stopped = opened.adopt(await requireStopped(restored.db, config), (one) => one.release())
      const how = { config, pushTokens: options.endPushTokens === true }
      const { sessions, pushTokens, trash, position } = await completeRestore(restored, how, stopped.tx)
      terminal.print(
        `ended ${sessions} sessions and ${pushTokens} push tokens; ${trash} blobs in the trash are kept for longer`,
      )
      terminal.print(`the event stream continues at position ${position}`)
    }
    return verifyCommand.run(terminal, { ...options, repair: true })
  },
}
